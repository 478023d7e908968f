#!/bin/sh
# The embedded checkpoint's last passes: outputs of systems get labels that agree with people better than its scores do, a copy is worth
# more than anything else, a text that stands twice is none, and the rest keeps the score that it has.
#
#   DATA=folder WORK=folder sh mini_last.sh
#
# DATA and WORK are those of mini.sh, mini_again.sh and mini_copies.sh, which made the checkpoints before and the ratings in WORK/embedded.
# A pass takes a quarter of an hour on one core. Stop it whenever you like and start it again.
set -eu

DATA=${DATA:?give the folder of the data, DATA=...}
WORK=${WORK:?give the folder to work in, WORK=...}
START=${START:-$WORK/copies/bleurt-repro-mini}       # what learns: mini_copies.sh made it
BEFORE=${BEFORE:-$WORK/embedded/bleurt-repro-mini}   # what mini_again.sh began with: mini.sh made it
LARGER=${LARGER:-bleurt-repro-base}                  # what labels
ENCODER=${ENCODER:-sentence-transformers/all-MiniLM-L6-v2}        # for the figures' BERTscore
LARGER_ENCODER=${LARGER_ENCODER:-sentence-transformers/all-mpnet-base-v2}  # for the labels'
LAYER=${LAYER:-9}                      # of the larger encoder, which BERTscore compares
RATINGS=${RATINGS:-$WORK/embedded}     # folder with ratings.jsonl and held_out.jsonl
FINETUNE=${FINETUNE:-finetune_mini}
DIVISOR=${DIVISOR:-1}                  # of all numbers of pairs and bootstrap samples, as in mini.sh

# of NUMBER: so many pairs or samples, fewer with a DIVISOR, rounded up
of() { echo $((($1 + DIVISOR - 1) / DIVISOR)); }

recipes=$(dirname "$0")
last=$WORK/last
validation=$WORK/wmt2018/validation.jsonl
mkdir -p "$last"

# lines FIRST NUMBER NAME: so many lines of a file from a place on
lines() { tail -n "+$(($(of "$1") + 1))" "$last/$3.jsonl" | head -n "$(of "$2")"; }
# own_scores NAME: of the pairs of a file
own_scores() { [ -f "$last/$1.txt" ] || bleurt-repro score --pairs "$last/$1.jsonl" --checkpoint "$START" --output "$last/$1.txt"; }

# 1. Labels of outputs whose references are not held out, and of rated pairs, on the scale of the scores that they have
if [ ! -f "$last/train.jsonl" ]; then
    # labelled NAME OPTIONS...: pairs, BERTscore and the larger checkpoint's scores
    labelled() {
        name=$1
        shift
        python "$recipes/pairs_to_label.py" --outputs "$WORK/wmt2018/test.jsonl" --held-out "$RATINGS/held_out.jsonl" \
            --held-out "$validation" "$@" --encoder "$LARGER_ENCODER" --layer "$LAYER" --scores "$last/$name-bertscore.txt" \
            --output "$last/$name.jsonl"
    }
    labelled some --rated "$RATINGS/ratings.jsonl" --most-outputs "$(of 8000)" --per-reference 2 --most "$(of 7600)" --seed 131
    labelled more --known "$last/some.jsonl" --most-outputs "$(of 9000)" --per-reference 3 --seed 141
    cat "$last/some.jsonl" "$last/more.jsonl" >"$last/outputs.jsonl"
    cat "$last/some-bertscore.txt" "$last/more-bertscore.txt" >"$last/bertscore.txt"
    bleurt-repro score --pairs "$last/outputs.jsonl" --checkpoint "$LARGER" --dtype bfloat16 --output "$last/larger.txt"
    own_scores outputs
    bleurt-repro data pseudo-labels --input "$last/outputs.jsonl" --dropping-rate 0 --scores "$last/larger.txt" --weight 0.6 \
        --scores "$last/bertscore.txt" --weight 0.4 --output "$last/labels"
    bleurt-repro data anchors --ratings "$RATINGS/ratings.jsonl" --share 0.15 --seed 131 --output "$last/anchored.jsonl"
    grep -e "anchor: identical" -e "anchor: empty" "$last/anchored.jsonl" >"$last/extremes.jsonl"
    bleurt-repro data contrasts --parallel "$DATA/en-de.tsv.gz" --parallel "$DATA/en-fr.tsv.gz" --leave-out multi30k \
        --reordered 0.4 --mirrored 0.25 --ratings "$RATINGS/ratings.jsonl" --pairs "$(of 1500)" --seed 131 \
        --output "$last/contrasts.jsonl"
    bleurt-repro data near-copies --input "$DATA/wiki.tsv.gz" --column 3 --ratings "$RATINGS/ratings.jsonl" --turned -0.6 \
        --pairs "$(of 20000)" --seed 131 --output "$last/near.jsonl"
    for kind in roles opposites; do bleurt-repro data $kind --pairs "$(of 3000)" --seed 131 --output "$last/$kind.jsonl"; done
    python "$recipes/training_set.py" --ratings "$last/extremes.jsonl" --labels "$last/labels/train.jsonl" --like "$last/outputs.txt" \
        --joined "$(of 1200)" --seed 161 --output "$last/train.jsonl"
fi

# 2. Two passes over these labels and different other pairs; what is published is a mean with the checkpoints before
learn() {  # SEED, and the first NEAR copy, TEMPLATE and CONTRAST to take
    if [ ! -f "$last/train-$1.jsonl" ]; then
        {
            lines "$2" 4500 near
            for kind in roles opposites; do lines "$3" 400 $kind; done
            lines "$4" 400 contrasts
        } >"$last/others-$1.jsonl"
        own_scores "others-$1"
        python "$recipes/scored_pairs.py" --pairs "$last/others-$1.jsonl" --scores "$last/others-$1.txt" \
            --output "$last/others-$1-scored.jsonl"
        python "$recipes/training_round.py" --train "$last/train.jsonl" --number "$(of 17000)" --identical "$(of 1800)" \
            --empty "$(of 300)" --repeated "$(of 1200)" --identical-contrasts "$(of 3200)" \
            --contrasts "$last/others-$1-scored.jsonl" --seed "$1" --output "$last/train-$1.jsonl"
    fi
    [ -f "$last/run-$1/results.json" ] || bleurt-repro finetune --config "$FINETUNE" --num-train-epochs 1 --learning-rate 6e-5 \
        --dropout 0 --max-length 256 --eval-strategy no --save-strategy steps --save-steps 300 --load-best-model-at-end False \
        --model "$START" --seed "$1" --train-file "$last/train-$1.jsonl" --validation-file "$validation" \
        --output-dir "$last/run-$1" --resume
}
learn 161 0 0 0
learn 162 4500 600 400
[ -d "$last/bleurt-repro-mini" ] || bleurt-repro average "$last/run-161" "$last/run-162" "$START" "$BEFORE" --weight 0.22 \
    --weight 0.22 --weight 0.46 --weight 0.1 --dtype float8 --output "$last/bleurt-repro-mini"

# 3. Calibration and figures
sh "$recipes/measure.sh" "$last/bleurt-repro-mini" "$last" "$RATINGS/held_out.jsonl" "$validation" chrf++ "bertscore:$ENCODER"
