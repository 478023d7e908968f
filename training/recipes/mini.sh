#!/bin/sh
# From text to a scorer of 23 million parameters: teachers, synthetic pairs, pre-training, fine-tuning, figures.
#
#   DATA=folder WORK=folder sh mini.sh
#
# DATA holds wiki.tsv.gz (text in column 3), en-fr.tsv.gz and en-de.tsv.gz (source, split, english, target), nli.tsv.gz
# (source, split, label, premise, hypothesis), wmt/ as `bleurt-repro data wmt --data-dir` reads it, and webnlg/ as
# `bleurt-repro experiment webnlg --data` does; see docs/how-to.
# Everything goes to WORK. Stop it whenever you like and start it again: each step goes on where it was, or is passed over
# when its results are there. Settings below can be given from outside in the same way as DATA and WORK.
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
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

# tune FOLDER OPTIONS...: fine-tune into a folder, unless that is done; what it prints goes to a log beside it
tune() {
    folder=$1
    shift
    [ -f "$folder/results.json" ] || bleurt-repro finetune --config finetune_mini "$@" --output_dir "$folder" --resume \
        >>"$folder.log" 2>&1 || { echo "mini.sh: fine-tuning failed, see $folder.log" >&2; return 1; }
}
# finished PROCESSES...: wait for them all, and stop if one failed
finished() { for process in "$@"; do wait "$process"; done; }

teachers=$WORK/teachers
recipes=$(dirname "$0")
mkdir -p "$teachers"

# 1. Teachers (docs/how-to/train-teachers.md)
[ -f "$teachers/masked_lm/results.json" ] || python -m bleurt_repro.training.teachers.masked_lm \
    --config teacher_masked_lm --bf16 --model "$ENCODER" --train_file "$DATA/wiki.tsv.gz" --text_column 3 \
    --output_dir "$teachers/masked_lm" --resume
[ -f "$teachers/translator/results.json" ] || python -m bleurt_repro.training.teachers.translator \
    --config teacher_translator --bf16 --parallel_files fr="$DATA/en-fr.tsv.gz" de="$DATA/en-de.tsv.gz" \
    --source_weights tatoeba=0.7 python-docs=0.5 --word_weights Tom=0.1 \
    --copied_file "$DATA/wiki.tsv.gz" --copied_column 3 --output_dir "$teachers/translator" --resume
# sources of entailment pairs whose licence forbids commercial use, and a noisy one, are left out
[ -f "$teachers/entailment/results.json" ] || python -m bleurt_repro.training.teachers.entailment \
    --config teacher_entailment --bf16 --model "$ENCODER" --pairs_file "$DATA/nli.tsv.gz" \
    --held_out_source "mnli-dev(m+mm)" --test_sources breaking-nli \
    --source_shares "sick(train+?)=0" sick2014=0 joci-train=0 \
                    "anli-r1-dev(NC)=0" "anli-r2-dev(NC)=0" "anli-r3-dev(NC)=0" \
    --output_dir "$teachers/entailment" --resume

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
[ -f "$WORK/pretrained/results.json" ] || torchrun --nproc_per_node "$PROCESSES" -m bleurt_repro.training.pretrain \
    --config pretrain_mini --model "$ENCODER" --pairs "$WORK/pairs" --output_dir "$WORK/pretrained" --resume

# 4. Protocol models: trained on the ratings of 2015-16, tested on 2017, with and without pre-training
[ -d "$WORK/wmt2017" ] || bleurt-repro data wmt --config-name 2017 --data-dir "$DATA/wmt" --output "$WORK/wmt2017"
mkdir -p "$WORK/protocol17"
set --
for seed in $SEEDS; do
    running=
    for start in bare pretrained; do
        model=$WORK/pretrained
        [ $start = pretrained ] || model=$ENCODER
        tune "$WORK/protocol17/$start-$seed" --model "$model" --seed "$seed" --train_file "$WORK/wmt2017/train.jsonl" \
            --validation_file "$WORK/wmt2017/validation.jsonl" &
        running="$running $!"
        set -- "$@" --checkpoint "$WORK/protocol17/$start-$seed"
    done
    finished $running
done
[ -f "$WORK/protocol17/results.json" ] || bleurt-repro experiment agreement --ratings "$WORK/wmt2017/test.jsonl" "$@" \
    --title "WMT 2017, to English" --output "$WORK/protocol17"

# 5. Protocol models taught by a larger one, which is fine-tuned on the same ratings and labels pairs that nobody rated (news of
#    2018 and synthetic ones), BERTscore on it beside: the pre-trained model learns from that and from people in one go
[ -d "$WORK/wmt2018" ] || bleurt-repro data wmt --config-name 2018 --data-dir "$DATA/wmt" --output "$WORK/wmt2018"
taught=$WORK/protocol17-taught
mkdir -p "$taught"
tune "$taught/teacher" --learning_rate 3e-5 --model "$LARGER" --train_file "$WORK/wmt2017/train.jsonl" \
    --validation_file "$WORK/wmt2017/validation.jsonl"
[ -f "$taught/bertscore.txt" ] || python "$recipes/pairs_to_label.py" --rated "$WORK/wmt2017/train.jsonl" \
    --outputs "$WORK/wmt2018/test.jsonl" --held-out "$WORK/wmt2017/validation.jsonl" --held-out "$WORK/wmt2017/test.jsonl" \
    --synthetic "$WORK/pairs" --seed 17 --encoder "$LARGER" --layer 9 --output "$taught/triples.jsonl" \
    --scores "$taught/bertscore.txt"
bleurt-repro data pseudo-labels --input "$taught/triples.jsonl" --dropping-rate 0 --dtype bfloat16 \
    --teacher "$taught/teacher" --weight 0.7 --scores "$taught/bertscore.txt" --weight 0.3 --output "$taught/labels"
python "$recipes/training_set.py" --ratings "$WORK/wmt2017/train.jsonl" --labels "$taught/labels/train.jsonl" --joined 0 \
    --output "$taught/train.jsonl"
running=
set --
for seed in $SEEDS; do
    tune "$taught/student-$seed" --num_train_epochs 2 --model "$WORK/pretrained" --seed "$seed" \
        --train_file "$taught/train.jsonl" --validation_file "$WORK/wmt2017/validation.jsonl" &
    set -- "$@" --checkpoint "$taught/student-$seed"
    if [ -z "$running" ]; then running=$!; else finished $running $!; running=; fi
done
finished $running
[ -f "$taught/results.json" ] || bleurt-repro experiment agreement --ratings "$WORK/wmt2017/test.jsonl" \
    --checkpoint "$taught/teacher" "$@" --baselines "bertscore:$ENCODER" --title "WMT 2017, to English" --output "$taught"

# 6. Two small scorers that teach a third (docs/how-to/make-the-embedded-checkpoint.md): the mean of two fine-tunings,
#    trained further on ratings of 2015-18, anchors and contrasts; and the pre-trained one, fine-tuned
ship=$WORK/embedded
mkdir -p "$ship"
ratings=$WORK/wmt2018/train.jsonl
validation=$WORK/wmt2018/validation.jsonl
tune "$ship/from-encoder" --model "$ENCODER" --train_file "$ratings" --validation_file "$validation" &
running=$!
tune "$ship/from-entailment" --model "$teachers/entailment" --train_file "$ratings" --validation_file "$validation" &
finished $running $!
[ -d "$ship/mean" ] || bleurt-repro average "$ship/from-encoder" "$ship/from-entailment" --dtype float16 --output "$ship/mean"
[ -f "$ship/ratings.jsonl" ] || python "$recipes/ship_ratings.py" --wmt2018 "$WORK/wmt2018" --output "$ship/ratings.jsonl" \
    --held-out "$ship/held_out.jsonl"
for seed in 0 1; do  # one for the first scorer, one for the last
    [ -f "$ship/anchored-$seed.jsonl" ] || bleurt-repro data anchors --ratings "$ship/ratings.jsonl" --share 0.15 \
        --seed $seed --output "$ship/anchored-$seed.jsonl"
    [ -f "$ship/contrasts-$seed.jsonl" ] || bleurt-repro data contrasts --parallel "$DATA/en-de.tsv.gz" \
        --parallel "$DATA/en-fr.tsv.gz" --leave-out multi30k --reordered 0.4 --ratings "$ship/ratings.jsonl" \
        --pairs 32000 --seed $seed --output "$ship/contrasts-$seed.jsonl"
done
cat "$ship/anchored-0.jsonl" "$ship/contrasts-0.jsonl" >"$ship/train-first.jsonl"
tune "$ship/first" --num_train_epochs 1 --max_length 256 --model "$ship/mean" --train_file "$ship/train-first.jsonl" \
    --validation_file "$validation" &
running=$!
tune "$ship/from-pretrained" --model "$WORK/pretrained" --train_file "$ratings" --validation_file "$validation" &
finished $running $!

# 7. That third: trained on people's ratings, on what its teachers and BERTscore say of other pairs, on longer texts, anchors
#    and contrasts; the mean of two such runs, and then of that before and after a short last pass
[ -f "$ship/bertscore.txt" ] || python "$recipes/pairs_to_label.py" --rated "$ship/ratings.jsonl" \
    --outputs "$WORK/wmt2018/test.jsonl" --most-outputs 24000 --per-reference 6 --held-out "$ship/held_out.jsonl" \
    --held-out "$validation" --synthetic "$WORK/pairs" --synthetic-pairs 10000 --nli "$DATA/nli.tsv.gz" \
    --encoder "$ENCODER" --layer 4 --output "$ship/triples.jsonl" --scores "$ship/bertscore.txt"
bleurt-repro data pseudo-labels --input "$ship/triples.jsonl" --dropping-rate 0 --teacher "$ship/first" \
    --teacher "$ship/from-pretrained" --scores "$ship/bertscore.txt" --output "$ship/labels"
python "$recipes/training_set.py" --ratings "$ship/anchored-1.jsonl" --labels "$ship/labels/train.jsonl" \
    --contrasts "$ship/contrasts-1.jsonl" --output "$ship/train.jsonl"
seed=0
running=
for start in from-pretrained first; do
    seed=$((seed + 1))
    tune "$ship/stage2-$start" --num_train_epochs 1 --max_length 256 --model "$ship/$start" --seed $seed \
        --train_file "$ship/train.jsonl" --validation_file "$validation" &
    running="$running $!"
done
finished $running
[ -d "$ship/stage2" ] || bleurt-repro average "$ship/stage2-from-pretrained" "$ship/stage2-first" --output "$ship/stage2"
python "$recipes/ship_last_pass.py" --train "$ship/train.jsonl" --empty 4000 --output "$ship/last.jsonl"
tune "$ship/last" --num_train_epochs 1 --learning_rate 3e-5 --max_length 256 --model "$ship/stage2" \
    --train_file "$ship/last.jsonl" --validation_file "$validation" --export_dtype float16
[ -d "$ship/before" ] || bleurt-repro average "$ship/stage2" "$ship/last" --dtype float16 --output "$ship/before"

# 8. That one, taught by a larger model, which is fine-tuned on ratings, anchors and contrasts and
#    says what it holds of rated and unrated pairs and of contrasts. Two runs over that, two more from their mean that see more
#    identical and empty candidates; the mean of the latter, and of that and the checkpoint before
taught=$ship/taught
mkdir -p "$taught"
[ -f "$taught/ratings.jsonl" ] || python "$recipes/ship_ratings.py" --wmt2018 "$WORK/wmt2018" --number 6000 \
    --output "$taught/ratings.jsonl"
[ -f "$taught/anchored.jsonl" ] || bleurt-repro data anchors --ratings "$taught/ratings.jsonl" --share 0.08 --seed 3 \
    --output "$taught/anchored.jsonl"
[ -f "$taught/contrasts-teacher.jsonl" ] || bleurt-repro data contrasts --parallel "$DATA/en-de.tsv.gz" \
    --parallel "$DATA/en-fr.tsv.gz" --leave-out multi30k --reordered 0.4 --mirrored 0.25 --ratings "$taught/ratings.jsonl" \
    --pairs 8000 --seed 5 --output "$taught/contrasts-teacher.jsonl"
[ -f "$taught/contrasts.jsonl" ] || bleurt-repro data contrasts --parallel "$DATA/en-de.tsv.gz" \
    --parallel "$DATA/en-fr.tsv.gz" --leave-out multi30k --reordered 0.4 --mirrored 0.25 --ratings "$ship/ratings.jsonl" \
    --pairs 16000 --seed 6 --output "$taught/contrasts.jsonl"
cat "$taught/anchored.jsonl" "$taught/contrasts-teacher.jsonl" >"$taught/train-teacher.jsonl"
[ -f "$taught/teacher/results.json" ] || torchrun --nproc_per_node "$PROCESSES" -m bleurt_repro.training.finetune \
    --config finetune_mini --learning_rate 3e-5 --num_train_epochs 1 --max_length 192 --eval_strategy steps --eval_steps 371 \
    --save_strategy steps --save_steps 371 --per_device_eval_batch_size 32 --model "$LARGER" \
    --train_file "$taught/train-teacher.jsonl" --validation_file "$validation" --output_dir "$taught/teacher" --resume
[ -f "$taught/bertscore.txt" ] || python "$recipes/pairs_to_label.py" --rated "$ship/ratings.jsonl" \
    --outputs "$WORK/wmt2018/test.jsonl" --most-outputs 14000 --per-reference 4 --held-out "$ship/held_out.jsonl" \
    --held-out "$validation" --nli "$DATA/nli.tsv.gz" --nli-pairs 12000 --seed 8 --encoder "$LARGER" --layer 9 \
    --output "$taught/triples.jsonl" --scores "$taught/bertscore.txt"
bleurt-repro data pseudo-labels --input "$taught/triples.jsonl" --dropping-rate 0 --dtype bfloat16 \
    --teacher "$taught/teacher" --weight 0.7 --scores "$taught/bertscore.txt" --weight 0.3 --output "$taught/labels"
bleurt-repro score --pairs "$taught/contrasts.jsonl" --checkpoint "$taught/teacher" --dtype bfloat16 \
    --output "$taught/contrasts.txt"
python "$recipes/training_set.py" --ratings "$ship/anchored-1.jsonl" --labels "$taught/labels/train.jsonl" \
    --contrasts "$taught/contrasts.jsonl" --contrast-scores "$taught/contrasts.txt" --output "$taught/train.jsonl"
running=
for seed in 1 2; do
    tune "$taught/student-$seed" --num_train_epochs 1 --max_length 256 --model "$ship/before" --seed $seed \
        --train_file "$taught/train.jsonl" --validation_file "$validation" &
    running="$running $!"
done
finished $running
[ -d "$taught/students" ] || bleurt-repro average "$taught/student-1" "$taught/student-2" --output "$taught/students"
running=
for seed in 1 2; do
    [ -f "$taught/second-$seed.jsonl" ] || python "$recipes/ship_last_pass.py" --train "$taught/train.jsonl" --number 54000 \
        --identical 700 --empty 4000 --seed $seed --output "$taught/second-$seed.jsonl"
    tune "$taught/second-$seed" --num_train_epochs 1 --learning_rate 7e-5 --max_length 256 --model "$taught/students" \
        --seed $seed --train_file "$taught/second-$seed.jsonl" --validation_file "$validation" &
    running="$running $!"
done
finished $running
[ -d "$taught/second" ] || bleurt-repro average "$taught/second-1" "$taught/second-2" --dtype float16 --output "$taught/second"
[ -d "$taught/mean" ] || bleurt-repro average "$taught/second" "$ship/before" --dtype float16 --output "$taught/mean"

# 9. The embedded checkpoint: that one after five passes over a part of its pairs and sentences of who did what to whom, the
#    later ones made twice and averaged; contrasts and entailment pairs join in. The mean of the last and of the second
roles=$ship/roles
mkdir -p "$roles"
# pass NAME SEED FROM RATE PAIRS-OF PAIRS EMPTY ROLES OTHERS...: one pass over PAIRS pairs of a file, EMPTY with an empty
# candidate, ROLES of roles, and all of other files
pass() {
    name=$1 seed=$2 from=$3 rate=$4 of=$5 pairs=$6 empty=$7 share=$8
    shift 8
    if [ ! -f "$roles/$name.jsonl" ]; then
        bleurt-repro data roles --pairs "$share" --seed "$seed" --output "$roles/more-$name.jsonl"
        [ $# = 0 ] || cat "$@" >>"$roles/more-$name.jsonl"
        python "$recipes/ship_last_pass.py" --train "$of" --number "$pairs" --identical 600 --empty "$empty" --seed "$seed" \
            --contrasts "$roles/more-$name.jsonl" --output "$roles/$name.jsonl"
    fi
    tune "$roles/$name" --num_train_epochs 1 --learning_rate "$rate" --max_length 256 --model "$from" --seed "$seed" \
        --train_file "$roles/$name.jsonl" --validation_file "$validation"
}
# mean NAME CHECKPOINT...: average weights, unless that is done
mean() {
    name=$1
    shift
    [ -d "$roles/$name" ] || bleurt-repro average "$@" --output "$roles/$name"
}
if [ ! -f "$roles/contrasts-c.jsonl" ]; then
    bleurt-repro data contrasts --parallel "$DATA/en-de.tsv.gz" --parallel "$DATA/en-fr.tsv.gz" --leave-out multi30k \
        --reordered 0.2 --ratings "$ship/ratings.jsonl" --pairs 14000 --seed 9 --output "$roles/contrasts.jsonl"
    sed -n 1,8000p "$roles/contrasts.jsonl" >"$roles/contrasts-a.jsonl"
    sed -n 8001,11000p "$roles/contrasts.jsonl" >"$roles/contrasts-b.jsonl"
    sed -n 11001,14000p "$roles/contrasts.jsonl" >"$roles/contrasts-c.jsonl"
fi
pass first 1 "$taught/mean" 1e-4 "$taught/train.jsonl" 36000 3000 16000
pass second-a 2 "$roles/first" 1e-4 "$taught/train.jsonl" 36000 3000 24000 &
running=$!
pass second-b 3 "$roles/first" 1e-4 "$taught/train.jsonl" 36000 3000 24000 &
finished $running $!
mean second "$roles/second-a" "$roles/second-b"
mean mixture-second "$roles/second" "$roles/second" "$taught/mean"
pass third-a 4 "$roles/second" 7e-5 "$taught/train.jsonl" 44000 2500 10000 "$roles/contrasts-a.jsonl" &
running=$!
pass third-b 5 "$roles/second" 7e-5 "$taught/train.jsonl" 48000 2500 12000 &
finished $running $!
mean third "$roles/third-a" "$roles/third-b"
mean mixture-third "$roles/third" "$roles/third" "$taught/mean"
[ -f "$roles/rest.jsonl" ] || python "$recipes/entailment_pairs.py" --nli "$DATA/nli.tsv.gz" --of "$taught/train.jsonl" \
    --entailed 0.4 --neutral -0.1 --contradicted -0.5 --output "$roles/entailment-labels.jsonl" --rest "$roles/rest.jsonl"
pass fourth-a 6 "$roles/mixture-third" 5e-5 "$roles/rest.jsonl" 18000 2000 9000 "$roles/contrasts-b.jsonl" \
    "$roles/entailment-labels.jsonl" &
running=$!
pass fourth-b 7 "$roles/mixture-third" 5e-5 "$roles/rest.jsonl" 18000 2000 9000 "$roles/contrasts-c.jsonl" \
    "$roles/entailment-labels.jsonl" &
finished $running $!
mean fourth "$roles/fourth-a" "$roles/fourth-b"
mean mixture-fourth "$roles/fourth" "$roles/mixture-second"
if [ ! -f "$roles/entailment-moved.jsonl" ]; then
    python "$recipes/entailment_pairs.py" --nli "$DATA/nli.tsv.gz" --output "$roles/entailment.jsonl"
    bleurt-repro score --pairs "$roles/entailment.jsonl" --checkpoint "$roles/mixture-fourth" --dtype bfloat16 \
        --output "$roles/entailment.txt"
    python "$recipes/entailment_pairs.py" --nli "$DATA/nli.tsv.gz" --scores "$roles/entailment.txt" \
        --output "$roles/entailment-moved.jsonl"
fi
pass fifth-a 8 "$roles/mixture-fourth" 5e-5 "$roles/rest.jsonl" 22000 1500 8000 "$roles/entailment-moved.jsonl" &
running=$!
pass fifth-b 9 "$roles/mixture-fourth" 5e-5 "$roles/rest.jsonl" 22000 1500 8000 "$roles/entailment-moved.jsonl" &
finished $running $!
mean fifth "$roles/fifth-a" "$roles/fifth-b"
[ -d "$ship/bleurt-repro-mini" ] || bleurt-repro average "$roles/fifth" "$roles/mixture-second" --dtype float16 \
    --output "$ship/bleurt-repro-mini"
bleurt-repro calibrate "$ship/bleurt-repro-mini" --ratings "$validation"

# 10. What it knows, agreement with ratings of references it has not seen, and data-to-text
bleurt-repro experiment sanity --checkpoint "$ship/bleurt-repro-mini" --baselines sentbleu --baselines chrf++ \
    --baselines "bertscore:$ENCODER" --references "$ship/held_out.jsonl" --output "$ship/sanity"
bleurt-repro experiment agreement --ratings "$ship/held_out.jsonl" --checkpoint "$ship/bleurt-repro-mini" \
    --baselines sentbleu chrf++ "bertscore:$ENCODER" --by lp --resamples 200 --output "$ship/agreement" \
    --title "WMT 2018, to English, references not trained on"
bleurt-repro experiment webnlg --data "$DATA/webnlg" --checkpoint "$ship/bleurt-repro-mini" --training_systems 0 \
    --training_inputs 0 --baselines bleu chrf++ "bertscore:$ENCODER" --resamples 500 --output "$ship/webnlg"
