#!/bin/sh
# A protocol model of 23 million parameters, taught by one of 109 million that was first taught by itself: ratings of 2015-16, tested on 2017.
#
#   DATA=folder WORK=folder sh taught.sh
#
# DATA has wmt/ as `bleurt-repro data wmt --data-dir` reads it; everything goes to WORK/taught. Outputs of 2018 are read as text, without their
# ratings. The larger model takes hours on a CPU, and minutes on a GPU; the small one an hour and a half on two cores. Stop it whenever you
# like and start it again: a step whose results are there is skipped, a fine-tuning that was stopped begins anew.
set -eu

DATA=${DATA:?give the folder of the data, DATA=...}
WORK=${WORK:?give the folder to work in, WORK=...}
ENCODER=${ENCODER:-sentence-transformers/all-MiniLM-L6-v2}
LARGER=${LARGER:-sentence-transformers/all-mpnet-base-v2}
LAYER=${LAYER:-9}             # of the larger encoder, which BERTscore compares
SEEDS=${SEEDS:-1 2 3}         # of the larger model
FINETUNE=${FINETUNE:-finetune_mini}
DIVISOR=${DIVISOR:-1}         # of all numbers of pairs and bootstrap samples, as in mini.sh

# of NUMBER: so many pairs or samples, fewer with a DIVISOR, rounded up
of() { echo $((($1 + DIVISOR - 1) / DIVISOR)); }

recipes=$(dirname "$0")
taught=$WORK/taught
wmt=$WORK/wmt2017
mkdir -p "$taught"

# tune NAME OPTIONS...: fine-tune into a folder, unless that is done; the weights are those of the end
tune() {
    folder=$taught/$1
    shift
    [ -f "$folder/results.json" ] || bleurt-repro finetune --config "$FINETUNE" "$@" --validation-file "$wmt/validation.jsonl" \
        --save-strategy no --load-best-model-at-end False --output-dir "$folder"
}
# average NAME FOLDER...: the mean of their weights
average() {
    name=$1
    shift
    [ -d "$taught/$name" ] || bleurt-repro average "$@" --output "$taught/$name"
}
# rated NAME MODEL: a model fine-tuned on the ratings, three seeds, and the mean of their weights
rated() {
    name=$1
    set -- "$2"
    for seed in $SEEDS; do tune "$name-$seed" --learning-rate 3e-5 --model "$1" --seed "$seed" --train-file "$wmt/train.jsonl"; done
    # shellcheck disable=SC2046  # its words are folders
    average "$name" $(for seed in $SEEDS; do echo "$taught/$name-$seed"; done)
}
# labelled NAME TEACHER: pairs of NAME.jsonl with 0.7 of the teacher's scores and 0.3 of BERTscore, on the scale of the ratings, and the ratings
labelled() {
    [ -f "$taught/$1-train.jsonl" ] && return
    bleurt-repro score --pairs "$taught/$1.jsonl" --checkpoint "$taught/$2" --dtype bfloat16 --output "$taught/$1-scores.txt"
    bleurt-repro data pseudo-labels --input "$taught/$1.jsonl" --dropping-rate 0 --scores "$taught/$1-scores.txt" --weight 0.7 \
        --scores "$taught/$1-bertscore.txt" --weight 0.3 --output "$taught/$1-labels"
    python "$recipes/training_set.py" --ratings "$wmt/train.jsonl" --labels "$taught/$1-labels/train.jsonl" --joined 0 \
        --output "$taught/$1-train.jsonl"
}

# 1. Pairs without ratings: all outputs of 2018 with their references, twice as many pairs of outputs of one reference, and the rated pairs
for year in 2017 2018; do
    [ -d "$WORK/wmt$year" ] || bleurt-repro data wmt --config-name "$year" --data-dir "$DATA/wmt" --output "$WORK/wmt$year"
done
[ -f "$taught/all-bertscore.txt" ] || python "$recipes/pairs_to_label.py" --rated "$wmt/train.jsonl" \
    --outputs "$WORK/wmt2018/test.jsonl" --held-out "$wmt/validation.jsonl" --held-out "$wmt/test.jsonl" --most-outputs "$(of 200000)" \
    --per-reference 20 --crossed "$(of 200000)" --seed 17 --encoder "$LARGER" --layer "$LAYER" --output "$taught/all.jsonl" \
    --scores "$taught/all-bertscore.txt"

# 2. The larger model labels a part of them, learns from its own labels with BERTscore's, and then from the ratings again
rated first "$LARGER"
for end in .jsonl -bertscore.txt; do head -n "$(of 90000)" "$taught/all$end" >"$taught/part$end"; done
labelled part first
tune learnt --num-train-epochs 1 --learning-rate 5e-5 --global-batch-size 64 --per-device-train-batch-size 64 --model "$LARGER" --seed 1 \
    --train-file "$taught/part-train.jsonl"
rated teacher "$taught/learnt"

# 3. The small model: one pass over the ratings, then rounds of two runs on different labels, and the mean of their weights
labelled all teacher
parts() {  # NAME OPTIONS...
    name=$1
    shift
    [ -f "$taught/$name-2.jsonl" ] || python "$recipes/training_parts.py" --train "$taught/all-train.jsonl" --output "$taught/$name" "$@"
}
parts short --longest 72 --encoder "$ENCODER" --seed 0
parts mixed --parts 2 --most "$(of 60000)" --seed 4
parts last --parts 5 --most "$(of 40000)" --seed 4  # the fourth and fifth have labels that those above have not
tune start --num-train-epochs 1 --model "$ENCODER" --seed 1 --train-file "$wmt/train.jsonl"
round() {  # NAME MODEL RATE PART PART SEED
    for part in "$4" "$5"; do
        tune "$1-$part" --num-train-epochs 1 --learning-rate "$3" --warmup-steps 0.05 --dropout 0 --global-batch-size 64 \
            --per-device-train-batch-size 64 --model "$2" --seed "$6" --train-file "$taught/$part.jsonl"
        set -- "$1" "$2" "$3" "$4" "$5" $(($6 + 1))
    done
    average "$1" "$taught/$1-$4" "$taught/$1-$5"
}
round one "$taught/start" 3e-4 short-1 short-2 10
round two "$taught/one" 2.5e-4 mixed-1 mixed-2 12
round three "$taught/two" 2e-4 last-4 last-5 14

# 4. Agreement of all of them
set --
for seed in $SEEDS; do set -- "$@" --checkpoint "$taught/teacher-$seed"; done
[ -f "$taught/agreement/results.json" ] || bleurt-repro experiment agreement --ratings "$wmt/test.jsonl" "$@" --checkpoint "$taught/teacher" \
    --checkpoint "$taught/three-last-4" --checkpoint "$taught/three-last-5" --checkpoint "$taught/three" --title "WMT 2017, to English" \
    --resamples "$(of 500)" --output "$taught/agreement"
