#!/bin/sh
# The embedded checkpoint, taught once more by the checkpoint of base's size: two passes over ratings, labels and near copies.
#
#   DATA=folder WORK=folder sh mini_again.sh
#
# DATA and WORK are those of mini.sh, which made the checkpoint and the ratings in WORK/embedded. Scores of the larger model are labels: of
# outputs of 2018 without ratings, and of sentences in which a word stands for a similar one. Stop it whenever you like and start it again.
set -eu

DATA=${DATA:?give the folder of the data, DATA=...}
WORK=${WORK:?give the folder to work in, WORK=...}
START=${START:-$WORK/embedded/bleurt-repro-mini}  # what learns
LARGER=${LARGER:-bleurt-repro-base}    # what labels
ENCODER=${ENCODER:-sentence-transformers/all-MiniLM-L6-v2}  # whose embeddings say which words are similar
RATINGS=${RATINGS:-$WORK/embedded}     # folder with ratings.jsonl and held_out.jsonl
OUTPUTS=${OUTPUTS:-46000}              # of systems, to label
SIMILAR=${SIMILAR:-24576}              # pairs with a similar word, to label
FEWEST_TEXTS=${FEWEST_TEXTS:-8}        # that a word must stand in to be replaced
FINETUNE=${FINETUNE:-finetune_mini}
DIVISOR=${DIVISOR:-1}                  # of all numbers of pairs and bootstrap samples, as in mini.sh

# of NUMBER: so many pairs or samples, fewer with a DIVISOR, rounded up
of() { echo $((($1 + DIVISOR - 1) / DIVISOR)); }

recipes=$(dirname "$0")
again=$WORK/again
validation=$WORK/wmt2018/validation.jsonl
mkdir -p "$again"

# 1. What the larger model says of outputs whose references are not held out, and of one word in place of a similar one
label() {  # NAME: the scores of its pairs
    bleurt-repro score --pairs "$again/$1.jsonl" --checkpoint "$LARGER" --dtype bfloat16 --output "$again/$1.txt"
    python "$recipes/scored_pairs.py" --pairs "$again/$1.jsonl" --scores "$again/$1.txt" --output "$again/$1-scored.jsonl"
}
[ -f "$again/outputs.jsonl" ] || python "$recipes/pairs_to_label.py" --rated "$RATINGS/ratings.jsonl" \
    --outputs "$WORK/wmt2018/test.jsonl" --held-out "$RATINGS/held_out.jsonl" --held-out "$validation" \
    --most-outputs "$(of "$OUTPUTS")" --per-reference 20 --seed 91 --output "$again/outputs.jsonl"
[ -f "$again/similar.jsonl" ] || python "$recipes/similar_words.py" --input "$DATA/wiki.tsv.gz" --column 3 \
    --ratings "$RATINGS/ratings.jsonl" --encoder "$ENCODER" --pairs "$(of "$SIMILAR")" --fewest-texts "$FEWEST_TEXTS" --seed 101 \
    --output "$again/similar.jsonl"
[ -f "$again/outputs-scored.jsonl" ] || label outputs
[ -f "$again/similar-scored.jsonl" ] || label similar

# 2. What one pass sees: ratings with anchors, labels, longer texts, near copies, templates, contrasts, identical and empty ones
pairs() {  # SEED, how many NEAR copies, of TEMPLATES of roles and as many of opposites, and pairs with a SIMILAR word
    train=$again/train-$1
    [ ! -f "$train.jsonl" ] || return 0
    bleurt-repro data anchors --ratings "$RATINGS/ratings.jsonl" --share 0.15 --seed "$1" --output "$train-anchored.jsonl"
    bleurt-repro data contrasts --parallel "$DATA/en-de.tsv.gz" --parallel "$DATA/en-fr.tsv.gz" --leave-out multi30k \
        --reordered 0.4 --mirrored 0.25 --ratings "$RATINGS/ratings.jsonl" --pairs "$(of 4000)" --seed "$1" \
        --output "$train-contrasts.jsonl"
    # a small model needs a clearer difference than the larger one had, and many texts that stand twice
    bleurt-repro data near-copies --input "$DATA/wiki.tsv.gz" --column 3 --ratings "$RATINGS/ratings.jsonl" --turned -0.6 \
        --pairs "$(of $((3 * $2)))" --seed "$1" --output "$train-near.jsonl"
    bleurt-repro data roles --pairs "$(of "$3")" --seed "$1" --output "$train-roles.jsonl"
    bleurt-repro data opposites --pairs "$(of "$3")" --seed "$1" --output "$train-opposites.jsonl"
    {
        head -n "$(of "$2")" "$train-near.jsonl"
        tail -n "+$(($(of "$2") + 1))" "$train-near.jsonl" | grep -e "contrast: repeated" -e "contrast: participants" || true
        cat "$train-roles.jsonl" "$train-opposites.jsonl" "$train-contrasts.jsonl"
    } >"$train-more.jsonl"
    python "$recipes/training_set.py" --ratings "$train-anchored.jsonl" --labels "$again/outputs-scored.jsonl" --scaled \
        --joined "$(of 2500)" --seed "$1" --output "$train-rated.jsonl"
    python "$recipes/training_round.py" --train "$train-rated.jsonl" --number 1000000 --identical "$(of 1000)" \
        --empty "$(of 700)" --identical-contrasts "$(of 3500)" --contrasts "$train-more.jsonl" --seed "$1" \
        --output "$train-round.jsonl"
    head -n "$(of "$4")" "$again/similar-scored.jsonl" | cat "$train-round.jsonl" - >"$train.jsonl"
}
pairs 101 36000 5000 0
pairs 102 36000 5000 "$SIMILAR"
pairs 103 20000 3000 "$((SIMILAR / 2))"
[ -f "$again/train-first.jsonl" ] || cat "$again/train-101.jsonl" "$again/train-102.jsonl" >"$again/train-first.jsonl"

# 3. Two passes, the second from halfway between where the first began and ended; what is published is the mean of both and the start
learn() {  # NAME, from which MODEL, learning RATE, SEED, file of pairs
    [ -f "$again/$1/results.json" ] || bleurt-repro finetune --config "$FINETUNE" --num-train-epochs 1 --learning-rate "$3" \
        --dropout 0 --max-length 256 --eval-strategy steps --eval-steps 1000 --save-strategy steps --save-steps 1000 \
        --load-best-model-at-end False --model "$2" --seed "$4" --train-file "$again/$5.jsonl" \
        --validation-file "$validation" --output-dir "$again/$1" --resume
}
learn first "$START" 1e-4 101 train-first
[ -d "$again/between" ] || bleurt-repro average "$again/first" "$START" --output "$again/between"
learn second "$again/between" 5e-5 103 train-103
[ -d "$again/bleurt-repro-mini" ] || bleurt-repro average "$again/second" "$again/first" "$START" --weight 0.36 --weight 0.36 \
    --weight 0.28 --dtype float8 --output "$again/bleurt-repro-mini"

# 4. Calibration and figures
sh "$recipes/measure.sh" "$again/bleurt-repro-mini" "$again" "$RATINGS/held_out.jsonl" "$validation" chrf++ "bertscore:$ENCODER"
