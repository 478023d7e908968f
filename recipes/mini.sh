#!/bin/sh
# From text to a scorer of 23 million parameters: teachers, synthetic pairs, pre-training, fine-tuning, figures.
#
#   DATA=folder WORK=folder sh mini.sh
#
# DATA holds wiki.tsv.gz (text in column 3), en-fr.tsv.gz and en-de.tsv.gz (source, split, english, target), nli.tsv.gz
# (source, split, label, premise, hypothesis), wmt/ as `bleurt-repro data wmt --data-dir` reads it, and webnlg/ as
# `bleurt-repro experiment webnlg --data` does; see docs/how-to.
# Everything goes to WORK. Stop it whenever you like and start it again: each step resumes, or is skipped when
# its results are there. Settings below can be given from outside in the same way as DATA and WORK.
set -eu

DATA=${DATA:?give the folder of the data, DATA=...}
WORK=${WORK:?give the folder to work in, WORK=...}
ENCODER=${ENCODER:-sentence-transformers/all-MiniLM-L6-v2}
LARGER=${LARGER:-sentence-transformers/all-mpnet-base-v2}  # 109 million parameters; teaches small ones
SEGMENTS=${SEGMENTS:-12000}   # about 3.8 pairs each
RECIPE=${RECIPE:-small}       # of the pairs: a name, or a YAML file, as of one with `dtype: bfloat16`
SHARDS=${SHARDS:-2}           # processes that make pairs side by side
PROCESSES=${PROCESSES:-2}     # processes that pre-train together; fine-tunings run two side by side
SEEDS=${SEEDS:-1 2 3}
LAYER=${LAYER:-9}             # of the larger encoder, which BERTscore compares
# configurations: names of those that come with the package, or YAML files
TEACHER_MASKED_LM=${TEACHER_MASKED_LM:-teacher_masked_lm}
TEACHER_TRANSLATOR=${TEACHER_TRANSLATOR:-teacher_translator}
TEACHER_ENTAILMENT=${TEACHER_ENTAILMENT:-teacher_entailment}
PRETRAIN=${PRETRAIN:-pretrain_mini}
FINETUNE=${FINETUNE:-finetune_mini}
DIVISOR=${DIVISOR:-1}         # of all numbers of pairs and bootstrap samples below: 500 shows that everything runs
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

# tune FOLDER OPTIONS...: fine-tune into a folder, unless that is done; what it prints goes to a log beside it
tune() {
    folder=$1
    shift
    [ -f "$folder/results.json" ] || bleurt-repro finetune --config "$FINETUNE" "$@" --output-dir "$folder" --resume \
        >>"$folder.log" 2>&1 || { echo "mini.sh: fine-tuning failed, see $folder.log" >&2; return 1; }
}
# of NUMBER: so many pairs, steps or samples, fewer with a DIVISOR, rounded up
of() { echo $((($1 + DIVISOR - 1) / DIVISOR)); }
# finished PROCESSES...: wait for them all, and stop if one failed
finished() { for process in "$@"; do wait "$process"; done; }

teachers=$WORK/teachers
recipes=$(dirname "$0")
mkdir -p "$teachers"

# 1. Teachers (docs/how-to/train-teachers.md)
[ -f "$teachers/masked_lm/results.json" ] || python -m bleurt_repro.training.teachers.masked_lm \
    --config "$TEACHER_MASKED_LM" --bf16 --model "$ENCODER" --train-file "$DATA/wiki.tsv.gz" --text-column 3 \
    --output-dir "$teachers/masked_lm" --resume
[ -f "$teachers/translator/results.json" ] || python -m bleurt_repro.training.teachers.translator \
    --config "$TEACHER_TRANSLATOR" --bf16 --parallel-files fr="$DATA/en-fr.tsv.gz" de="$DATA/en-de.tsv.gz" \
    --source-weights tatoeba=0.7 python-docs=0.5 --word-weights Tom=0.1 \
    --copied-file "$DATA/wiki.tsv.gz" --copied-column 3 --output-dir "$teachers/translator" --resume
# sources of entailment pairs whose licence forbids commercial use, and a noisy one, are left out
[ -f "$teachers/entailment/results.json" ] || python -m bleurt_repro.training.teachers.entailment \
    --config "$TEACHER_ENTAILMENT" --bf16 --model "$ENCODER" --pairs-file "$DATA/nli.tsv.gz" \
    --held-out-source "mnli-dev(m+mm)" --test-sources breaking-nli \
    --source-shares "sick(train+?)=0" sick2014=0 joci-train=0 \
                    "anli-r1-dev(NC)=0" "anli-r2-dev(NC)=0" "anli-r3-dev(NC)=0" \
    --output-dir "$teachers/entailment" --resume

# 2. Synthetic pairs (docs/how-to/make-synthetic-pairs.md)
if [ ! -f "$WORK/pairs/dataset_info.json" ]; then
    shard=0
    running=
    while [ "$shard" -lt "$SHARDS" ]; do
        bleurt-repro data synthetic --input "$DATA/wiki.tsv.gz" --column 3 --config "$RECIPE" --max-segments "$SEGMENTS" \
            --masked-lm "$teachers/masked_lm" --translator "$teachers/translator" \
            --entailment-model "$teachers/entailment" --bertscore-model "$ENCODER" \
            --output "$WORK/pairs" --num-shards "$SHARDS" --shard-index "$shard" >"$WORK/pairs-$shard.log" 2>&1 &
        running="$running $!"
        shard=$((shard + 1))
    done
    finished $running
fi

# 3. Pre-training on all signals
[ -f "$WORK/pretrained/results.json" ] || torchrun --nproc-per-node "$PROCESSES" -m bleurt_repro.training.pretrain \
    --config "$PRETRAIN" --model "$ENCODER" --pairs "$WORK/pairs" --output-dir "$WORK/pretrained" --resume

# 4. Protocol models: trained on the ratings of 2015-16, tested on 2017, with and without pre-training
[ -d "$WORK/wmt2017" ] || bleurt-repro data wmt --config-name 2017 --data-dir "$DATA/wmt" --output "$WORK/wmt2017"
mkdir -p "$WORK/protocol17"
set --
for seed in $SEEDS; do
    running=
    for start in bare pretrained; do
        model=$WORK/pretrained
        [ $start = pretrained ] || model=$ENCODER
        tune "$WORK/protocol17/$start-$seed" --model "$model" --seed "$seed" --train-file "$WORK/wmt2017/train.jsonl" \
            --validation-file "$WORK/wmt2017/validation.jsonl" &
        running="$running $!"
        set -- "$@" --checkpoint "$WORK/protocol17/$start-$seed"
    done
    finished $running
done
[ -f "$WORK/protocol17/results.json" ] || bleurt-repro experiment agreement --ratings "$WORK/wmt2017/test.jsonl" "$@" \
    --resamples "$(of 1000)" --title "WMT 2017, to English" --output "$WORK/protocol17"

# 5. Protocol models taught by a larger one, which is fine-tuned on the same ratings and labels pairs without ratings (news of
#    2018 and synthetic ones), averaged with its BERTscore: the pre-trained model learns from labels and ratings together
[ -d "$WORK/wmt2018" ] || bleurt-repro data wmt --config-name 2018 --data-dir "$DATA/wmt" --output "$WORK/wmt2018"
taught=$WORK/protocol17-taught
mkdir -p "$taught"
tune "$taught/teacher" --learning-rate 3e-5 --model "$LARGER" --train-file "$WORK/wmt2017/train.jsonl" \
    --validation-file "$WORK/wmt2017/validation.jsonl"
[ -f "$taught/bertscore.txt" ] || python "$recipes/pairs_to_label.py" --rated "$WORK/wmt2017/train.jsonl" \
    --outputs "$WORK/wmt2018/test.jsonl" --held-out "$WORK/wmt2017/validation.jsonl" --held-out "$WORK/wmt2017/test.jsonl" \
    --synthetic "$WORK/pairs" --seed 17 --encoder "$LARGER" --layer "$LAYER" --output "$taught/triples.jsonl" \
    --scores "$taught/bertscore.txt"
bleurt-repro data pseudo-labels --input "$taught/triples.jsonl" --dropping-rate 0 --dtype bfloat16 \
    --teacher "$taught/teacher" --weight 0.7 --scores "$taught/bertscore.txt" --weight 0.3 --output "$taught/labels"
python "$recipes/training_set.py" --ratings "$WORK/wmt2017/train.jsonl" --labels "$taught/labels/train.jsonl" --joined 0 \
    --output "$taught/train.jsonl"
running=
set --
for seed in $SEEDS; do
    tune "$taught/student-$seed" --num-train-epochs 2 --model "$WORK/pretrained" --seed "$seed" \
        --train-file "$taught/train.jsonl" --validation-file "$WORK/wmt2017/validation.jsonl" &
    set -- "$@" --checkpoint "$taught/student-$seed"
    if [ -z "$running" ]; then running=$!; else finished $running $!; running=; fi
done
finished $running
[ -f "$taught/results.json" ] || bleurt-repro experiment agreement --ratings "$WORK/wmt2017/test.jsonl" \
    --checkpoint "$taught/teacher" "$@" --baselines "bertscore:$ENCODER" --resamples "$(of 1000)" \
    --title "WMT 2017, to English" --output "$taught"

# 6. A larger model as teacher of the embedded checkpoint: fine-tuned on ratings of 2015-18, anchors and contrasts. It scores
#    pairs with ratings, outputs and synthetic pairs without, contrasts and entailment pairs; BERTscore on the bare larger
#    encoder is a second opinion on most
ship=$WORK/embedded
mkdir -p "$ship"
validation=$WORK/wmt2018/validation.jsonl
[ -f "$ship/held_out.jsonl" ] || python "$recipes/ship_ratings.py" --wmt2018 "$WORK/wmt2018" --number "$(of 12000)" \
    --output "$ship/ratings.jsonl" --held-out "$ship/held_out.jsonl"
[ -f "$ship/ratings-teacher.jsonl" ] || python "$recipes/ship_ratings.py" --wmt2018 "$WORK/wmt2018" --number "$(of 6000)" \
    --output "$ship/ratings-teacher.jsonl"
# extremes NAME RATINGS SHARE SEED PAIRS SEED: anchors of ratings, and contrasts of other sentences
extremes() {
    [ -f "$ship/anchored$1.jsonl" ] || bleurt-repro data anchors --ratings "$2" --share "$3" --seed "$4" \
        --output "$ship/anchored$1.jsonl"
    [ -f "$ship/contrasts$1.jsonl" ] || bleurt-repro data contrasts --parallel "$DATA/en-de.tsv.gz" \
        --parallel "$DATA/en-fr.tsv.gz" --leave-out multi30k --reordered 0.4 --mirrored 0.25 --ratings "$2" \
        --pairs "$5" --seed "$6" --output "$ship/contrasts$1.jsonl"
}
extremes -teacher "$ship/ratings-teacher.jsonl" 0.08 3 "$(of 8000)" 5
extremes "" "$ship/ratings.jsonl" 0.15 1 "$(of 16000)" 6
cat "$ship/anchored-teacher.jsonl" "$ship/contrasts-teacher.jsonl" >"$ship/train-teacher.jsonl"
[ -f "$ship/teacher/results.json" ] || torchrun --nproc-per-node "$PROCESSES" -m bleurt_repro.training.finetune \
    --config "$FINETUNE" --learning-rate 3e-5 --num-train-epochs 1 --max-length 192 --eval-strategy steps --eval-steps "$(of 371)" \
    --save-strategy steps --save-steps "$(of 371)" --per-device-eval-batch-size 32 --model "$LARGER" \
    --train-file "$ship/train-teacher.jsonl" --validation-file "$validation" --output-dir "$ship/teacher" --resume
draw() {  # NAME OPTIONS...: pairs whose references are not held out
    name=$1
    shift
    [ -f "$ship/$name.jsonl" ] || python "$recipes/pairs_to_label.py" --outputs "$WORK/wmt2018/test.jsonl" \
        --held-out "$ship/held_out.jsonl" --held-out "$validation" --output "$ship/$name.jsonl" "$@"
}
label() {  # NAME OPTIONS...: their labels by the larger model
    name=$1
    shift
    bleurt-repro data pseudo-labels --input "$ship/$name.jsonl" --dropping-rate 0 --dtype bfloat16 --teacher "$ship/teacher" \
        "$@" --output "$ship/labels-$name"
}
draw rated --rated "$ship/ratings.jsonl" --most-outputs "$(of 14000)" --per-reference 4 --seed 8 \
    --encoder "$LARGER" --layer "$LAYER" --scores "$ship/rated.txt"
draw unrated --most-outputs "$(of 20000)" --per-reference 12 --synthetic "$WORK/pairs" --synthetic-pairs "$(of 8000)" --seed 31
draw rest --rated "$WORK/wmt2018/train.jsonl" --most-outputs "$(of 30000)" --per-reference 10 --known "$ship/rated.jsonl" \
    --known "$ship/unrated.jsonl" --seed 9 --encoder "$LARGER" --layer "$LAYER" --scores "$ship/rest.txt"
label rated --weight 0.7 --scores "$ship/rated.txt" --weight 0.3
label unrated
label rest --weight 0.7 --scores "$ship/rest.txt" --weight 0.3
[ -f "$ship/entailment.jsonl" ] || python "$recipes/entailment_pairs.py" --nli "$DATA/nli.tsv.gz" --pairs "$(of 16000)" \
    --output "$ship/entailment.jsonl"
for pairs in contrasts entailment; do
    bleurt-repro score --pairs "$ship/$pairs.jsonl" --checkpoint "$ship/teacher" --dtype bfloat16 --output "$ship/$pairs.txt"
done

# 7. The embedded checkpoint: the pre-trained model learns from all of that, from longer texts, and from sentences by templates (roles
#    swapped or kept; meanings kept or reversed), in five rounds; each is two runs over parts of it, and the mean of their weights
[ -f "$ship/train.jsonl" ] || python "$recipes/training_set.py" --ratings "$ship/anchored.jsonl" \
    --labels "$ship/labels-rated/train.jsonl" --labels "$ship/labels-rest/train.jsonl" \
    --labels "$ship/labels-unrated/train.jsonl" --contrasts "$ship/contrasts.jsonl" --contrast-scores "$ship/contrasts.txt" \
    --joined "$(of 6000)" --output "$ship/train.jsonl"
[ -f "$ship/entailment-moved.jsonl" ] || python "$recipes/entailment_pairs.py" --nli "$DATA/nli.tsv.gz" --pairs "$(of 16000)" \
    --scores "$ship/entailment.txt" --output "$ship/entailment-moved.jsonl"
learn() {  # SEED FROM RATE ROLES OPPOSITES ENTAILMENT OPTIONS...: one run, over so many of each, and what the options draw
    seed=$1
    from=$2
    rate=$3
    if [ ! -f "$ship/pairs-$seed.jsonl" ]; then
        bleurt-repro data roles --pairs "$(of "$4")" --seed "$seed" --output "$ship/more-$seed.jsonl"
        bleurt-repro data opposites --pairs "$(of "$5")" --seed "$seed" --output "$ship/opposites-$seed.jsonl"
        # even seeds take them from the end, so that the two runs of a round see different ones
        part=head
        [ $((seed % 2)) -eq 1 ] || part=tail
        $part -n "$(of "$6")" "$ship/entailment-moved.jsonl" | cat "$ship/opposites-$seed.jsonl" - >>"$ship/more-$seed.jsonl"
        shift 6
        python "$recipes/training_round.py" --train "$ship/train.jsonl" "$@" --seed "$seed" \
            --contrasts "$ship/more-$seed.jsonl" --output "$ship/pairs-$seed.jsonl"
    fi
    tune "$ship/run-$seed" --num-train-epochs 1 --learning-rate "$rate" --max-length 256 --model "$from" --seed "$seed" \
        --train-file "$ship/pairs-$seed.jsonl" --validation-file "$validation"
}
round() {  # NAME FIRST-SEED FROM RATE ...: two runs, side by side, and their mean
    name=$1
    first=$2
    shift 2
    learn "$first" "$@" &
    running=$!
    learn $((first + 1)) "$@" &
    finished $running $!
    [ -d "$ship/$name" ] || bleurt-repro average "$ship/run-$first" "$ship/run-$((first + 1))" --output "$ship/$name"
}
round first 1 "$WORK/pretrained" 1e-4 16000 12000 16000 --number "$(of 77000)" --identical 0 --empty 0
round second 41 "$ship/first" 1e-4 10000 10000 8000 --number "$(of 70000)" --identical "$(of 1500)" --empty "$(of 3000)"
round third 51 "$ship/second" 1e-4 16000 8000 6000 --number "$(of 70000)" --identical "$(of 2000)" --empty "$(of 1500)"
round fourth 61 "$ship/third" 7e-5 6000 8000 3000 --number "$(of 34000)" --identical "$(of 1200)" --empty "$(of 800)" --near 4
round fifth 71 "$ship/fourth" 7e-5 5000 5000 2000 --number "$(of 10000)" --identical "$(of 600)" --empty "$(of 300)" \
    --near 4 --identical-contrasts "$(of 4500)"
[ -d "$ship/bleurt-repro-mini" ] || bleurt-repro average "$ship/run-71" "$ship/run-72" --dtype float16 \
    --output "$ship/bleurt-repro-mini"
bleurt-repro calibrate "$ship/bleurt-repro-mini" --ratings "$validation" --reliability "$ship/held_out.jsonl" \
    --report "$ship/reliability.json"

# 8. Sanity checks, agreement with ratings of references that it was not trained on, and data-to-text
bleurt-repro experiment sanity --checkpoint "$ship/bleurt-repro-mini" --baselines sentbleu --baselines chrf++ \
    --baselines "bertscore:$ENCODER" --references "$ship/held_out.jsonl" --output "$ship/sanity"
bleurt-repro experiment agreement --ratings "$ship/held_out.jsonl" --checkpoint "$ship/bleurt-repro-mini" \
    --baselines sentbleu chrf++ "bertscore:$ENCODER" --by lp --resamples "$(of 200)" --output "$ship/agreement" \
    --title "WMT 2018, to English, references not trained on"
bleurt-repro experiment webnlg --data "$DATA/webnlg" --checkpoint "$ship/bleurt-repro-mini" --training-systems 0 \
    --training-inputs 0 --baselines bleu chrf++ "bertscore:$ENCODER" --resamples "$(of 500)" --output "$ship/webnlg"
