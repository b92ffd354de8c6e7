package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-io/bursar/internal/bursarapi"
)

func TestNameOf(t *testing.T) {
	tests := []struct {
		command string
		want    string
	}{
		{"python train.py", "train"},
		{"python3.12 -u src/train.v2.py --epochs 3", "train-v2"},
		{"/usr/bin/python", "python"},
		{"./bin/train --steps 5", "train"},
		{"bash run all.sh", "run"},
		{"torchrun --nproc-per-node=4 fit.py", "fit"},
		{"__", "job"},
		{strings.Repeat("a", 200), strings.Repeat("a", 63)},
	}
	for _, tt := range tests {
		if got := nameOf(strings.Fields(tt.command)); got != tt.want {
			t.Errorf("nameOf(%q) = %q, want %q", tt.command, got, tt.want)
		}
	}
}

func TestTrainingJobName(t *testing.T) {
	tests := map[string]string{
		"train_v2":                             "train-v2",
		"-a-":                                  "a",
		"__":                                   "job",
		strings.Repeat("a", 62) + "_" + "tail": strings.Repeat("a", 62),
	}
	for name, want := range tests {
		if got := trainingJobName(name); got != want {
			t.Errorf("trainingJobName(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestChooseQueue(t *testing.T) {
	a := bursarapi.Queue{Name: "a", Policy: "p", Shares: []string{"QS1", "QS2"}}
	b := bursarapi.Queue{Name: "b", Policy: "q", Shares: []string{"QS2", "QS3"}}
	plain := bursarapi.Queue{Name: "plain"}
	fair := bursarapi.Queue{Name: "fair", Policy: "r", FairShare: true}
	tests := []struct {
		name       string
		queues     []bursarapi.Queue
		share      string
		identifier string
		want       string
		err        string
	}{
		{"the share's queue", []bursarapi.Queue{a, b, plain, fair}, "QS1", "", "a", ""},
		{"no share, one queue without", []bursarapi.Queue{a, plain, fair}, "", "", "plain", ""},
		{"the fair-share queue", []bursarapi.Queue{a, plain, fair}, "", "ada", "fair", ""},
		{"two queues have it", []bursarapi.Queue{a, b}, "QS2", "", "", "several queues fit (a, b); choose one with --queue"},
		{"two fair-share queues", []bursarapi.Queue{fair, {Name: "fairer", FairShare: true}}, "", "ada", "", "several queues fit (fair, fairer); choose one with --queue"},
		{"nobody has it", []bursarapi.Queue{a}, "QS9", "", "", `--share is "QS9", which no queue has; it must be one of QS1, QS2`},
		{"no share given", []bursarapi.Queue{a, fair}, "", "", "", "--share is missing; it must be one of QS1, QS2"},
		{"no identifier given", []bursarapi.Queue{fair}, "", "", "", "--share-identifier is missing; it says whose the job is in queue fair"},
		{"no fair-share queue", []bursarapi.Queue{a, plain}, "", "ada", "", `--share-identifier is "ada", but no queue has a fair-share policy; leave it out`},
		{"both given", []bursarapi.Queue{a, fair}, "QS1", "ada", "", "--share and --share-identifier are of queues of different kinds; give one of them"},
		{"nothing there", nil, "QS1", "", "", "there is no job queue yet"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := chooseQueue(tt.queues, tt.share, tt.identifier)
			if got != tt.want || !matches(err, tt.err) {
				t.Errorf("got %q and error %v; want %q and %q", got, err, tt.want, tt.err)
			}
		})
	}
}

// matches reports whether err says want; an empty want is no error.
func matches(err error, want string) bool {
	if err == nil || want == "" {
		return err == nil && want == ""
	}
	return strings.Contains(err.Error(), want)
}

func TestPayload(t *testing.T) {
	c := &commands{System: System{Getwd: func() (string, error) { return "/home/ada/it's here", nil }}}
	s := submission{
		name: "train_it", here: true, command: []string{"python", "train.py", "--epochs", "3"},
		instances:       []string{"ml.g5.xlarge:2"},
		environment:     pairs{"A": "1"},
		hyperparameters: pairs{"lr": "0.1"},
		channels:        pairs{"train": "file:///data/t", "eval": "file:///data/e"},
	}
	text, err := c.payload(s)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	err = json.Unmarshal([]byte(`{
		"TrainingJobName": "train-it",
		"AlgorithmSpecification": {
			"ContainerEntrypoint": ["/bin/sh"],
			"ContainerArguments": ["-c", "cd \"$0\" && exec \"$@\"", "/home/ada/it's here", "python", "train.py", "--epochs", "3"],
			"TrainingInputMode": "File"
		},
		"ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 1},
		"Environment": {"A": "1"},
		"HyperParameters": {"lr": "0.1"},
		"InputDataConfig": [
			{"ChannelName": "eval", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "file:///data/e"}}},
			{"ChannelName": "train", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "file:///data/t"}}}
		]
	}`), &want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestResourceConfig(t *testing.T) {
	tests := []struct {
		instances []string
		err       string
	}{
		{[]string{"ml.g5.xlarge"}, ""},
		{[]string{"ml.g5.xlarge:2", "ml.p5.48xlarge:1"}, ""},
		{nil, "--instances is missing"},
		{[]string{"ml.g5.xlarge:none"}, `--instances is "ml.g5.xlarge:none"; it must be TYPE:COUNT with a count from 1`},
		{[]string{"ml.g5.xlarge:0"}, "with a count from 1"},
		{[]string{":1"}, `--instances is ":1"`},
	}
	for _, tt := range tests {
		config, err := resourceConfig(tt.instances)
		if !matches(err, tt.err) {
			t.Errorf("%v: got error %v, want %q", tt.instances, err, tt.err)
		}
		if groups := config["InstanceGroups"]; (len(tt.instances) > 1) != (groups != nil) {
			t.Errorf("%v: instance groups are %v", tt.instances, groups)
		}
	}
}

func TestShortIDsTellApart(t *testing.T) {
	ids := []string{"0a1b2c3d-0001", "0a1b2c3d-0002", "ffff0000-0000"}
	want := []string{"0a1b2c3d-0001", "0a1b2c3d-0002", "ffff0000-0000"}
	if diff := cmp.Diff(want, shortIDs(ids)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := shortIDs([]string{"0a1b2c3d-0001", "ffff0000-0000"}); got[0] != "0a1b2c3d" {
		t.Errorf("got %v, want 8 characters each", got)
	}
}
