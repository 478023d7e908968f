#!/bin/sh
# The embedded checkpoint's last passes: a copy is worth more than anything else, and a text that stands twice is no copy.
#
#   DATA=folder WORK=folder sh mini_copies.sh
#
# DATA and WORK are those of mini.sh and mini_again.sh, which made the checkpoints before and the ratings in WORK/embedded. Labels are the
# larger checkpoint's scores and BERTscore. Stop it whenever you like and start it again.
set -eu

DATA=${DATA:?give the folder of the data, DATA=...}
WORK=${WORK:?give the folder to work in, WORK=...}
START=${START:-$WORK/again/bleurt-repro-mini}        # what learns: mini_again.sh made it
BEFORE=${BEFORE:-$WORK/embedded/bleurt-repro-mini}   # what that learned from: mini.sh made it
LARGER=${LARGER:-bleurt-repro-base}                  # what labels
ENCODER=${ENCODER:-sentence-transformers/all-MiniLM-L6-v2}        # for the figures' BERTscore
LARGER_ENCODER=${LARGER_ENCODER:-sentence-transformers/all-mpnet-base-v2}  # for the labels'
LAYER=${LAYER:-9}                      # of the larger encoder, which BERTscore compares
RATINGS=${RATINGS:-$WORK/embedded}     # folder with ratings.jsonl and held_out.jsonl
FINETUNE=${FINETUNE:-finetune_mini}
DIVISOR=${DIVISOR:-1}                  # of all numbers of pairs and bootstrap samples, as in mini.sh

# of NUMBER: so many pairs or samples, fewer with a DIVISOR, rounded up
of() { echo $((($1 + DIVISOR - 1) / DIVISOR)); }
# lines FIRST NUMBER FILE: so many lines of a file from a place on
lines() { tail -n "+$(($(of "$1") + 1))" "$3" | head -n "$(of "$2")"; }

recipes=$(dirname "$0")
copies=$WORK/copies
validation=$WORK/wmt2018/validation.jsonl
mkdir -p "$copies"

# 1. Labels of rated pairs, and of outputs whose references are not held out
if [ ! -f "$copies/bertscore.txt" ]; then
    python "$recipes/pairs_to_label.py" --rated "$RATINGS/ratings.jsonl" --outputs "$WORK/wmt2018/test.jsonl" \
        --held-out "$RATINGS/held_out.jsonl" --held-out "$validation" --most-outputs "$(of 15000)" --per-reference 4 --most "$(of 28672)" \
        --seed 111 --encoder "$LARGER_ENCODER" --layer "$LAYER" --scores "$copies/bertscore.txt" --output "$copies/pairs.jsonl"
fi
bleurt-repro score --pairs "$copies/pairs.jsonl" --checkpoint "$LARGER" --dtype bfloat16 --output "$copies/larger.txt"
bleurt-repro data pseudo-labels --input "$copies/pairs.jsonl" --dropping-rate 0 --scores "$copies/larger.txt" --weight 0.7 \
    --scores "$copies/bertscore.txt" --weight 0.3 --output "$copies/labels"

# 2. Ratings with anchors and labels, longer texts, near copies, roles and opposites, contrasts
if [ ! -f "$copies/rated.jsonl" ]; then
    bleurt-repro data anchors --ratings "$RATINGS/ratings.jsonl" --share 0.15 --seed 111 --output "$copies/anchored.jsonl"
    bleurt-repro data contrasts --parallel "$DATA/en-de.tsv.gz" --parallel "$DATA/en-fr.tsv.gz" --leave-out multi30k \
        --reordered 0.4 --mirrored 0.25 --ratings "$RATINGS/ratings.jsonl" --pairs "$(of 2400)" --seed 111 \
        --output "$copies/contrasts.jsonl"
    bleurt-repro data near-copies --input "$DATA/wiki.tsv.gz" --column 3 --ratings "$RATINGS/ratings.jsonl" --turned -0.6 \
        --pairs "$(of 80000)" --seed 111 --output "$copies/near.jsonl"
    for kind in roles opposites; do bleurt-repro data $kind --pairs "$(of 3000)" --seed 111 --output "$copies/$kind.jsonl"; done
    python "$recipes/training_set.py" --ratings "$copies/anchored.jsonl" --labels "$copies/labels/train.jsonl" \
        --joined "$(of 4000)" --seed 111 --output "$copies/rated.jsonl"
fi
if [ ! -f "$copies/train-111.jsonl" ]; then
    {
        lines 0 9000 "$copies/near.jsonl"
        lines 9000 24000 "$copies/near.jsonl" | grep -e "contrast: repeated" -e "contrast: participants" || true
        for kind in roles opposites; do lines 0 2500 "$copies/$kind.jsonl"; done
        lines 0 2000 "$copies/contrasts.jsonl"
    } >"$copies/more-111.jsonl"
    python "$recipes/training_round.py" --train "$copies/rated.jsonl" --number 1000000 --identical "$(of 1800)" --empty "$(of 600)" \
        --repeated "$(of 1500)" --identical-contrasts "$(of 2500)" --contrasts "$copies/more-111.jsonl" --seed 111 \
        --output "$copies/train-111.jsonl"
fi
# shorter ones, in which every fourth pair is a copy: SEED, and the first NEAR copy, TEMPLATE and CONTRAST to take
shorter() {
    [ ! -f "$copies/train-$1.jsonl" ] || return 0
    {
        lines "$2" 5000 "$copies/near.jsonl"
        for kind in roles opposites; do lines "$3" 700 "$copies/$kind.jsonl"; done
        lines "$4" 400 "$copies/contrasts.jsonl"
    } >"$copies/more-$1.jsonl"
    python "$recipes/training_round.py" --train "$copies/rated.jsonl" --number "$(of 8500)" --identical "$(of 1500)" \
        --empty "$(of 400)" --repeated "$(of 900)" --identical-contrasts "$(of 3600)" --contrasts "$copies/more-$1.jsonl" --seed "$1" \
        --output "$copies/train-$1.jsonl"
}
shorter 121 40000 0 0
shorter 122 60000 1500 1200

# 3. One pass over the first set, and from halfway one over each shorter one; what is published is a mean with the checkpoints before
learn() {  # SEED, from which MODEL, how many STEPS between evaluations
    [ -f "$copies/run-$1/results.json" ] || bleurt-repro finetune --config "$FINETUNE" --num-train-epochs 1 --learning-rate 6e-5 \
        --dropout 0 --max-length 256 --eval-strategy steps --eval-steps "$3" --save-strategy steps --save-steps "$3" \
        --load-best-model-at-end False --model "$2" --seed "$1" --train-file "$copies/train-$1.jsonl" \
        --validation-file "$validation" --output-dir "$copies/run-$1" --resume
}
learn 111 "$START" 500
[ -d "$copies/between" ] || bleurt-repro average "$copies/run-111" "$START" --output "$copies/between"
learn 121 "$copies/between" 320
learn 122 "$copies/between" 320
[ -d "$copies/bleurt-repro-mini" ] || bleurt-repro average "$copies/run-121" "$copies/run-122" "$START" "$BEFORE" --weight 0.26 \
    --weight 0.26 --weight 0.36 --weight 0.12 --dtype float8 --output "$copies/bleurt-repro-mini"

# 4. Calibration and figures
sh "$recipes/measure.sh" "$copies/bleurt-repro-mini" "$copies" "$RATINGS/held_out.jsonl" "$validation" chrf++ "bertscore:$ENCODER"
