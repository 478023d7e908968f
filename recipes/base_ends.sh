#!/bin/sh
# A pass that makes the larger checkpoint better at the ends of the scale: copies and empty candidates that it misses get the score that
# others of their kind have, and the rest keeps the score that it has. That costs free paraphrases, and hypotheses of entailment data, with
# scores moved by their labels, were to bring them back. The head and all but the three upper layers stay as they are. The published checkpoint
# is that of base_copies.sh: what this gave is in the training log.
#
#   DATA=folder WORK=folder sh base_ends.sh
#
# DATA and WORK are those of base.sh, which made the ratings in WORK/base, and of base_copies.sh, which made the checkpoint before; DATA also has
# the entailment pairs. Looking for what it misses takes 20 minutes on one core, each run half an hour. Stop it whenever you like and start it
# again.
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

# scores NAME: those that the checkpoint gives the pairs of a file
scores() {
    [ -f "$ends/$1.txt" ] || bleurt-repro score --pairs "$ends/$1.jsonl" --checkpoint "$START" --dtype bfloat16 --output "$ends/$1.txt"
}
# scored NAME: the pairs with these scores
scored() {
    scores "$1"
    python "$recipes/scored_pairs.py" --pairs "$ends/$1.jsonl" --scores "$ends/$1.txt" --unbounded --output "$ends/$1-scored.jsonl"
}

# 1. The ends of the scale: what it misses there, and a sample of the rest
# shellcheck disable=SC2086  # the words of $held are options
[ -f "$ends/extremes.jsonl" ] || python "$recipes/hard_extremes.py" --checkpoint "$START" --ratings "$RATINGS/ratings.jsonl" $held \
    --parallel "$DATA/en-de.tsv.gz" --parallel "$DATA/en-fr.tsv.gz" --leave-out multi30k --number "$(of 6000)" --others "$(of 800)" \
    --output "$ends/extremes.jsonl"

# 2. Pairs with the scores that they have: outputs whose references are not held out and rated pairs, among them those that are nearly their
#    reference, for these rise where copies do; near copies, templates, contrasts. Entailment pairs whose scores are moved by their labels
if [ ! -f "$ends/train.jsonl" ]; then
    # shellcheck disable=SC2086
    python "$recipes/pairs_to_label.py" --outputs "$WORK/wmt2018/test.jsonl" $held --rated "$RATINGS/ratings.jsonl" \
        --most-outputs "$(of 16000)" --per-reference 2 --most "$(of 20000)" --seed 207 --output "$ends/outputs.jsonl"
    scored outputs
    bleurt-repro data near-copies --input "$DATA/wiki.tsv.gz" --column 3 --ratings "$RATINGS/ratings.jsonl" --turned -0.6 \
        --pairs "$(of 400)" --seed 207 --output "$ends/near.jsonl"
    bleurt-repro data contrasts --parallel "$DATA/en-de.tsv.gz" --parallel "$DATA/en-fr.tsv.gz" --leave-out multi30k \
        --reordered 0.4 --mirrored 0.25 --ratings "$RATINGS/ratings.jsonl" --pairs "$(of 300)" --seed 207 --output "$ends/contrasts.jsonl"
    for kind in roles opposites; do bleurt-repro data $kind --pairs "$(of 100)" --seed 207 --output "$ends/$kind.jsonl"; done
    cat "$ends/near.jsonl" "$ends/contrasts.jsonl" "$ends/roles.jsonl" "$ends/opposites.jsonl" >"$ends/others.jsonl"
    scored others
    python "$recipes/training_round.py" --train "$ends/outputs-scored.jsonl" --number "$(of 6500)" --near 3 --identical 0 --empty 0 \
        --contrasts "$ends/others-scored.jsonl" --seed 207 --output "$ends/round.jsonl"
    # entailment OPTIONS...: the same pairs each time, with --scores those moved by their labels
    entailment() {
        python "$recipes/entailment_pairs.py" --nli "$DATA/nli.tsv.gz" --pairs "$(of 7000)" --entailed 0.2 --neutral 0 --contradicted -1 \
            --turned 0.6 --seed 207 "$@"
    }
    entailment --output "$ends/entailment.jsonl"
    scores entailment
    entailment --scores "$ends/entailment.txt" --output "$ends/moved.jsonl"
    cat "$ends/round.jsonl" "$ends/extremes.jsonl" "$ends/moved.jsonl" >"$ends/train.jsonl"
fi

# 3. A pass over them, twice
for seed in 207 208; do
    [ -f "$ends/run-$seed/results.json" ] || bleurt-repro finetune --config "$FINETUNE" --num-train-epochs 1 --learning-rate 4e-5 \
        --no-standardize --global-batch-size 64 --dropout 0 --frozen-layers "$FROZEN" --frozen-head --max-length 256 --eval-strategy no \
        --save-strategy steps --save-steps 60 --load-best-model-at-end False --model "$START" --seed "$seed" \
        --train-file "$ends/train.jsonl" --validation-file "$validation" --output-dir "$ends/run-$seed" --resume
done

# 4. The mean of their weights, and float8, as in base_copies.sh: what stayed as it was is in float8 already
[ -d "$ends/mean" ] || bleurt-repro average "$ends/run-207" "$ends/run-208" --output "$ends/mean"
[ -d "$ends/rounded" ] || python "$recipes/exact_float8.py" --checkpoint "$ends/mean" --pairs "$ends/train.jsonl" --output "$ends/rounded"
[ -d "$ends/bleurt-repro-base" ] || bleurt-repro average "$ends/rounded" --dtype float8 --max-shard-size 45MB \
    --output "$ends/bleurt-repro-base"

# 5. Calibration and figures
sh "$recipes/measure.sh" "$ends/bleurt-repro-base" "$ends" "$RATINGS/held_out.jsonl" "$validation" chrf++ "bertscore@$LAYER:$ENCODER"
