#!/bin/sh
# Two passes that make the larger checkpoint better at the ends of the scale: copies and empty candidates that it misses get the score that
# others of their kind have, and the rest keeps the score that it has. The head and all but the three upper layers stay as they are. The
# published checkpoint is that of base_copies.sh: this was tried in parts, with what the training log says.
#
#   DATA=folder WORK=folder sh base_ends.sh
#
# DATA and WORK are those of base.sh, which made the ratings in WORK/base, and of base_copies.sh, which made the checkpoint before. Looking for
# what it misses takes 20 minutes on one core, each pass a quarter of an hour. Stop it whenever you like and start it again.
set -eu

DATA=${DATA:?give the folder of the data, DATA=...}
WORK=${WORK:?give the folder to work in, WORK=...}
START=${START:-$WORK/base-copies/bleurt-repro-base}  # what learns
ENCODER=${ENCODER:-sentence-transformers/all-mpnet-base-v2}  # for the figures' BERTscore
LAYER=${LAYER:-9}                             # of the encoder, which BERTscore compares
FROZEN=${FROZEN:-9}                           # lowest layers that stay as they are
RATINGS=${RATINGS:-$WORK/base}                # folder with ratings.jsonl and held_out.jsonl
FINETUNE=${FINETUNE:-finetune_mini}
DIVISOR=${DIVISOR:-1}                         # of all numbers of pairs and bootstrap samples, as in mini.sh

# of NUMBER: so many pairs or samples, fewer with a DIVISOR, rounded up
of() { echo $((($1 + DIVISOR - 1) / DIVISOR)); }

recipes=$(dirname "$0")
ends=$WORK/base-ends
validation=$WORK/wmt2018/validation.jsonl
held="--held-out $RATINGS/held_out.jsonl --held-out $validation"
mkdir -p "$ends"

# scored NAME: the pairs of a file with the scores that the checkpoint gives them
scored() {
    bleurt-repro score --pairs "$ends/$1.jsonl" --checkpoint "$START" --dtype bfloat16 --output "$ends/$1.txt"
    python "$recipes/scored_pairs.py" --pairs "$ends/$1.jsonl" --scores "$ends/$1.txt" --unbounded \
        --output "$ends/$1-scored.jsonl"
}

# 1. The ends of the scale: what it misses there, and a sample of the rest
# shellcheck disable=SC2086  # the words of $held are options
[ -f "$ends/extremes.jsonl" ] || python "$recipes/hard_extremes.py" --checkpoint "$START" --ratings "$RATINGS/ratings.jsonl" $held \
    --parallel "$DATA/en-de.tsv.gz" --parallel "$DATA/en-fr.tsv.gz" --leave-out multi30k --number "$(of 6000)" --others "$(of 800)" \
    --output "$ends/extremes.jsonl"

for seed in 193 194; do
    # 2. Pairs with the scores that they have: outputs whose references are not held out and rated pairs, among them all that are nearly
    #    their reference, for these rise where copies do; near copies, templates, contrasts
    train=$ends/train-$seed
    if [ ! -f "$train.jsonl" ]; then
        # shellcheck disable=SC2086
        python "$recipes/pairs_to_label.py" --outputs "$WORK/wmt2018/test.jsonl" $held --rated "$RATINGS/ratings.jsonl" \
            --most-outputs "$(of 8000)" --per-reference 2 --most "$(of 10000)" --seed "$seed" --output "$ends/outputs-$seed.jsonl"
        scored "outputs-$seed"
        bleurt-repro data near-copies --input "$DATA/wiki.tsv.gz" --column 3 --ratings "$RATINGS/ratings.jsonl" --turned -0.6 \
            --pairs "$(of 800)" --seed "$seed" --output "$ends/near-$seed.jsonl"
        bleurt-repro data contrasts --parallel "$DATA/en-de.tsv.gz" --parallel "$DATA/en-fr.tsv.gz" --leave-out multi30k \
            --reordered 0.4 --mirrored 0.25 --ratings "$RATINGS/ratings.jsonl" --pairs "$(of 150)" --seed "$seed" \
            --output "$ends/contrasts-$seed.jsonl"
        for kind in roles opposites; do bleurt-repro data $kind --pairs "$(of 100)" --seed "$seed" --output "$ends/$kind-$seed.jsonl"; done
        cat "$ends/near-$seed.jsonl" "$ends/contrasts-$seed.jsonl" "$ends/roles-$seed.jsonl" "$ends/opposites-$seed.jsonl" \
            >"$ends/others-$seed.jsonl"
        scored "others-$seed"
        python "$recipes/training_round.py" --train "$ends/outputs-$seed-scored.jsonl" --number "$(of 3500)" --near 3 \
            --identical 0 --empty 0 --contrasts "$ends/others-$seed-scored.jsonl" --seed "$seed" --output "$ends/round-$seed.jsonl"
        cat "$ends/round-$seed.jsonl" "$ends/extremes.jsonl" >"$train.jsonl"
    fi

    # 3. A pass over them
    [ -f "$ends/run-$seed/results.json" ] || bleurt-repro finetune --config "$FINETUNE" --num-train-epochs 1 --learning-rate 4e-5 \
        --dropout 0 --frozen-layers "$FROZEN" --frozen-head --max-length 256 --eval-strategy no --save-strategy steps --save-steps 150 \
        --load-best-model-at-end False --model "$START" --seed "$seed" --train-file "$train.jsonl" --validation-file "$validation" \
        --output-dir "$ends/run-$seed" --resume
done

# 4. The mean of their weights, and float8, as in base_copies.sh: what stayed as it was is in float8 already
[ -d "$ends/mean" ] || bleurt-repro average "$ends/run-193" "$ends/run-194" --output "$ends/mean"
[ -d "$ends/rounded" ] || python "$recipes/exact_float8.py" --checkpoint "$ends/mean" --pairs "$ends/train-193.jsonl" --output "$ends/rounded"
[ -d "$ends/bleurt-repro-base" ] || bleurt-repro average "$ends/rounded" --dtype float8 --max-shard-size 45MB \
    --output "$ends/bleurt-repro-base"

# 5. Calibration and figures
sh "$recipes/measure.sh" "$ends/bleurt-repro-base" "$ends" "$RATINGS/held_out.jsonl" "$validation" chrf++ "bertscore@$LAYER:$ENCODER"
