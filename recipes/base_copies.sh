#!/bin/sh
# Last passes of the larger checkpoint's upper layers: a copy is worth more than anything else, a text that stands twice is none, a copy
# whose meaning one word turns gets less, and the rest keeps the score that it has.
#
#   DATA=folder WORK=folder sh base_copies.sh
#
# DATA and WORK are those of base.sh, which made the ratings in WORK/base, and base_again.sh, which made the checkpoint before. The first
# two passes take 7 to 15 minutes each on one core, the others half of that. Stop it whenever you like and start it again.
set -eu

DATA=${DATA:?give the folder of the data, DATA=...}
WORK=${WORK:?give the folder to work in, WORK=...}
START=${START:-$WORK/base-again/bleurt-repro-base}  # what learns
ENCODER=${ENCODER:-sentence-transformers/all-mpnet-base-v2}  # for the figures' BERTscore
LAYER=${LAYER:-9}                             # of the encoder, which BERTscore compares
FROZEN=${FROZEN:-9}                           # lowest layers that stay as they are
RATINGS=${RATINGS:-$WORK/base}                # folder with ratings.jsonl and held_out.jsonl
FINETUNE=${FINETUNE:-finetune_mini}
DIVISOR=${DIVISOR:-1}                         # of all numbers of pairs and bootstrap samples, as in mini.sh

# of NUMBER: so many pairs or samples, fewer with a DIVISOR, rounded up
of() { echo $((($1 + DIVISOR - 1) / DIVISOR)); }

recipes=$(dirname "$0")
copies=$WORK/base-copies
validation=$WORK/wmt2018/validation.jsonl
mkdir -p "$copies"

# lines FIRST NUMBER NAME: so many lines of a file from a place on
lines() { tail -n "+$(($(of "$1") + 1))" "$copies/$3.jsonl" | head -n "$(of "$2")"; }
# scored NAME CHECKPOINT OPTIONS...: the pairs of a file with the scores that the checkpoint gives them
scored() {
    name=$1
    bleurt-repro score --pairs "$copies/$name.jsonl" --checkpoint "$2" --dtype bfloat16 --output "$copies/$name.txt"
    shift 2
    python "$recipes/scored_pairs.py" --pairs "$copies/$name.jsonl" --scores "$copies/$name.txt" "$@" --output "$copies/$name-scored.jsonl"
}

# 1. Outputs whose references are not held out and rated pairs, with the scores that they have; near copies, roles and opposites, contrasts
if [ ! -f "$copies/train.jsonl" ]; then
    held="--held-out $RATINGS/held_out.jsonl --held-out $validation"
    # shellcheck disable=SC2086  # the words of $held are options
    python "$recipes/pairs_to_label.py" --outputs "$WORK/wmt2018/test.jsonl" $held --rated "$RATINGS/ratings.jsonl" \
        --most-outputs "$(of 8000)" --per-reference 2 --most "$(of 6400)" --seed 131 --output "$copies/outputs.jsonl"
    scored outputs "$START"
    bleurt-repro data anchors --ratings "$RATINGS/ratings.jsonl" --share 0.15 --seed 131 --output "$copies/anchored.jsonl"
    grep -e "anchor: identical" -e "anchor: empty" "$copies/anchored.jsonl" >"$copies/extremes.jsonl"
    bleurt-repro data contrasts --parallel "$DATA/en-de.tsv.gz" --parallel "$DATA/en-fr.tsv.gz" --leave-out multi30k \
        --reordered 0.4 --mirrored 0.25 --ratings "$RATINGS/ratings.jsonl" --pairs "$(of 1500)" --seed 131 \
        --output "$copies/contrasts.jsonl"
    bleurt-repro data near-copies --input "$DATA/wiki.tsv.gz" --column 3 --ratings "$RATINGS/ratings.jsonl" --turned -0.6 \
        --pairs "$(of 20000)" --seed 131 --output "$copies/near.jsonl"
    for kind in roles opposites; do bleurt-repro data $kind --pairs "$(of 3000)" --seed 131 --output "$copies/$kind.jsonl"; done
    python "$recipes/training_set.py" --ratings "$copies/extremes.jsonl" --labels "$copies/outputs-scored.jsonl" --scaled \
        --joined "$(of 1200)" --seed 151 --output "$copies/train.jsonl"
fi

# 2. Two passes over different pairs
# learn SEED RATE MODEL: one pass of the upper layers over train-SEED
learn() {
    [ -f "$copies/run-$1/results.json" ] || bleurt-repro finetune --config "$FINETUNE" --num-train-epochs 1 --learning-rate "$2" \
        --dropout 0 --frozen-layers "$FROZEN" --max-length 256 --eval-strategy no --save-strategy steps --save-steps 150 \
        --load-best-model-at-end False --model "$3" --seed "$1" --train-file "$copies/train-$1.jsonl" \
        --validation-file "$validation" --output-dir "$copies/run-$1" --resume
}
first() {  # SEED, and the first NEAR copy, TEMPLATE and CONTRAST to take
    if [ ! -f "$copies/train-$1.jsonl" ]; then
        {
            lines "$2" 1900 near
            for kind in roles opposites; do lines "$3" 100 $kind; done
            lines "$4" 150 contrasts
        } >"$copies/others-$1.jsonl"
        scored "others-$1" "$START"
        python "$recipes/training_round.py" --train "$copies/train.jsonl" --number "$(of 2900)" --identical "$(of 800)" \
            --empty "$(of 600)" --empty-score -2.6 --repeated "$(of 600)" --identical-contrasts "$(of 1600)" \
            --contrasts "$copies/others-$1-scored.jsonl" --seed "$1" --output "$copies/train-$1.jsonl"
    fi
    learn "$1" 4e-5 "$START"
}
first 151 9000 1200 800
first 152 14000 1600 1100

# 3. From their mean two shorter ones, in which turned meanings get less than it gives them
[ -d "$copies/between" ] || bleurt-repro average "$copies/run-151" "$copies/run-152" --output "$copies/between"
if [ ! -f "$copies/turned-scored.jsonl" ]; then
    grep -v -E "contrast: (repeated|gibberish|same|source|in|with|content|as|half)" "$copies/near.jsonl" | tail -n "$(of 3400)" \
        >"$copies/turned.jsonl"
    scored turned "$copies/between" --lowered
fi
second() {  # SEED, that of the pass BEFORE whose other pairs it sees again, and the first TURNED meaning to take
    if [ ! -f "$copies/train-$1.jsonl" ]; then
        {
            lines "$3" 1700 turned-scored
            grep -v -E "contrast: (random word|same words)" "$copies/others-$2-scored.jsonl" | tail -n "$(of 300)"
        } >"$copies/others-$1.jsonl"
        python "$recipes/training_round.py" --train "$copies/train.jsonl" --number "$(of 900)" --identical "$(of 700)" \
            --identical-score 2.1 --empty "$(of 250)" --empty-score -2.6 --repeated "$(of 150)" --identical-contrasts "$(of 700)" \
            --contrasts "$copies/others-$1.jsonl" --seed "$1" --output "$copies/train-$1.jsonl"
    fi
    learn "$1" 3e-5 "$copies/between"
}
second 181 151 0
second 182 152 1700

# 4. A mean of weights, and float8, so that what the matrices compute on pairs of a pass changes least
[ -d "$copies/mean" ] || bleurt-repro average "$START" "$copies/run-151" "$copies/run-152" "$copies/run-181" "$copies/run-182" \
    --weight 0.5 --weight 0.05 --weight 0.05 --weight 0.2 --weight 0.2 --output "$copies/mean"
[ -d "$copies/rounded" ] || python "$recipes/exact_float8.py" --checkpoint "$copies/mean" --pairs "$copies/train-151.jsonl" \
    --output "$copies/rounded"
[ -d "$copies/bleurt-repro-base" ] || bleurt-repro average "$copies/rounded" --dtype float8 --max-shard-size 45MB \
    --output "$copies/bleurt-repro-base"

# 5. Calibration and figures
sh "$recipes/measure.sh" "$copies/bleurt-repro-base" "$copies" "$RATINGS/held_out.jsonl" "$validation" chrf++ "bertscore@$LAYER:$ENCODER"
