package trainingjob

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/job"
)

const full = `{
	"TrainingJobName": "resnet-50",
	"RoleArn": "arn:aws:iam::000000000000:role/any",
	"AlgorithmSpecification": {
		"TrainingImage": "repository/image:1", "TrainingInputMode": "File",
		"ContainerEntrypoint": ["python3", "train.py"], "ContainerArguments": ["--epochs", "3"],
		"MetricDefinitions": [{"Name": "loss", "Regex": "loss=(.*)"}]
	},
	"HyperParameters": {"learning-rate": "0.1"},
	"Environment": {"SEED": "7"},
	"InputDataConfig": [
		{"ChannelName": "train", "ContentType": "text/csv", "DataSource": {"S3DataSource":
			{"S3DataType": "S3Prefix", "S3Uri": "file:///data/train", "S3DataDistributionType": "FullyReplicated"}}},
		{"ChannelName": "val", "DataSource": {"FileSystemDataSource":
			{"FileSystemId": "fs-1", "DirectoryPath": "file:///data/val"}}}
	],
	"OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
	"CheckpointConfig": {"S3Uri": "s3://bucket/ckpt", "LocalPath": "/opt/ml/ckpt"},
	"ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30},
	"StoppingCondition": {"MaxRuntimeInSeconds": 3600}
}`

func TestParseReadsAWholeRequest(t *testing.T) {
	got, err := Parse(full)
	if err != nil {
		t.Fatal(err)
	}
	want := &Request{
		TrainingJobName: "resnet-50",
		Algorithm: Algorithm{
			TrainingImage: "repository/image:1", InputMode: "File",
			Entrypoint: []string{"python3", "train.py"}, Arguments: []string{"--epochs", "3"},
		},
		HyperParameters: map[string]string{"learning-rate": "0.1"},
		Environment:     map[string]string{"SEED": "7"},
		Channels: []Channel{
			{Name: "train", ContentType: "text/csv", Distribution: "FullyReplicated", URI: "file:///data/train"},
			{Name: "val", URI: "file:///data/val"},
		},
		OutputPath:        "s3://bucket/out",
		Checkpoints:       Checkpoints{S3URI: "s3://bucket/ckpt", LocalPath: "/opt/ml/ckpt"},
		Groups:            []Group{{Name: HomogeneousGroup, InstanceType: "ml.g5.xlarge", InstanceCount: 2}},
		VolumeSizeInGB:    30,
		StoppingCondition: StoppingCondition{MaxRuntime: time.Hour},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"python3", "train.py", "--epochs", "3"}, got.Algorithm.Command()); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
}

func TestParseFillsDefaults(t *testing.T) {
	r, err := Parse(`{"ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1}, "Environment": null}`)
	if err != nil {
		t.Fatal(err)
	}
	if r.MaxRuntime() != 24*time.Hour {
		t.Errorf("MaxRuntime is %v, want 24h", r.MaxRuntime())
	}
	if r.Checkpoints.LocalPath != "/opt/ml/checkpoints" {
		t.Errorf("checkpoints are at %q", r.Checkpoints.LocalPath)
	}
	if len(r.Algorithm.Command()) != 0 {
		t.Errorf("command is %q, want none", r.Algorithm.Command())
	}
}

func TestInstanceGroupsAreSummedByType(t *testing.T) {
	r, err := Parse(`{"ResourceConfig": {"InstanceGroups": [
		{"InstanceGroupName": "gpu", "InstanceType": "ml.p4d.24xlarge", "InstanceCount": 1},
		{"InstanceGroupName": "cpu", "InstanceType": "ml.c5.xlarge", "InstanceCount": 2},
		{"InstanceGroupName": "more", "InstanceType": "ml.p4d.24xlarge", "InstanceCount": 3}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	wantDemand := []job.Amount{{Unit: "ml.c5.xlarge", Quantity: 2}, {Unit: "ml.p4d.24xlarge", Quantity: 4}}
	if diff := cmp.Diff(wantDemand, r.Demand()); diff != "" {
		t.Errorf("demand (-want +got):\n%s", diff)
	}
	gpu, cpu, more := Instance{"ml.p4d.24xlarge", "gpu"}, Instance{"ml.c5.xlarge", "cpu"}, Instance{"ml.p4d.24xlarge", "more"}
	if diff := cmp.Diff([]Instance{gpu, cpu, cpu, more, more, more}, r.Instances()); diff != "" {
		t.Errorf("instances (-want +got):\n%s", diff)
	}
	if r.Workers() != 6 {
		t.Errorf("workers are %d, want 6", r.Workers())
	}
}

func TestParseRefuses(t *testing.T) {
	resources := func(s string) string { return `{"ResourceConfig": ` + s + `}` }
	with := func(s string) string {
		return `{"ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1}, ` + s + `}`
	}
	const count = "ResourceConfig.InstanceCount "
	tests := []struct{ name, payload, want string }{
		{"nothing", ``, "not JSON: it ends at byte 0"},
		{"not JSON", `InstanceCount: 1`, "not JSON: near byte"},
		{"cut off", `{"ResourceConfig": {`, "before it is complete"},
		{"cut off string", `{"Resource`, "before it is complete"},
		{"missing comma", `{"A": 1 "B": 2}`, "not JSON"},
		{"wrong bracket", `{"A": [1}}`, "not JSON"},
		{"list", `[]`, "the request is a list; it must be a JSON object"},
		{"null", `null`, "the request is null"},
		{"string", `"{}"`, `the request is the string "{}"`},
		{"trailing data", with(`"A": 1`) + `{}`, "goes on after its JSON object"},
		{"trailing garbage", with(`"A": 1`) + `x`, "goes on after its JSON object"},
		{"deep", strings.Repeat(`{"A":`, 100_000), "nests more than 64 levels"},
		{"deep lists", strings.Repeat(`[`, 100_000), "nests more than 64 levels"},
		{"duplicate", `{"ResourceConfig": {"InstanceCount": 1, "InstanceCount": 9}}`, count + "is given twice"},
		{"duplicate in what is ignored", with(`"Tags": [{"Key": "a", "Key": "b"}]`), "Tags[0].Key is given twice"},

		{"no resources", `{}`, "ResourceConfig is missing"},
		{"resources null", resources(`null`), "ResourceConfig is missing"},
		{"other case", `{"resourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1}}`, "ResourceConfig is missing"},
		{"resources a string", resources(`"ml.g5.xlarge"`), `ResourceConfig is the string "ml.g5.xlarge"; it must be an object`},
		{"no type", resources(`{"InstanceCount": 1}`), "ResourceConfig.InstanceType is missing; it must be an instance type such as ml.g5.xlarge"},
		{"no count", resources(`{"InstanceType": "ml.g5.xlarge"}`), count + "is missing; it must be a whole number from 1 to 10000000"},
		{"count zero", resources(`{"InstanceType": "a", "InstanceCount": 0}`), count + "is the number 0; it must be a whole number from 1 to 10000000"},
		{"count negative", resources(`{"InstanceType": "a", "InstanceCount": -3}`), count + "is the number -3; "},
		{"count fraction", resources(`{"InstanceType": "a", "InstanceCount": 1.5}`), count + "is the number 1.5; "},
		{"count exponent", resources(`{"InstanceType": "a", "InstanceCount": 1e3}`), count + "is the number 1e3; "},
		{"count large", resources(`{"InstanceType": "a", "InstanceCount": 10000001}`), count + "is the number 10000001; "},
		{"count huge", resources(`{"InstanceType": "a", "InstanceCount": 99999999999999999999}`), count + "is the number 99999999999999999999; "},
		{"count a string", resources(`{"InstanceType": "a", "InstanceCount": "2"}`), count + `is the string "2"; `},
		{"count true", resources(`{"InstanceType": "a", "InstanceCount": true}`), count + "is true; "},
		{"type a number", resources(`{"InstanceType": 5, "InstanceCount": 1}`), "ResourceConfig.InstanceType is the number 5; it must be a string"},
		{"both", resources(`{"InstanceType": "a", "InstanceCount": 1, "InstanceGroups": []}`), "has both InstanceGroups and InstanceType"},
		{"groups empty", resources(`{"InstanceGroups": []}`), "ResourceConfig.InstanceGroups is empty"},
		{"groups an object", resources(`{"InstanceGroups": {}}`), "ResourceConfig.InstanceGroups is an object; it must be a list"},
		{"group a string", resources(`{"InstanceGroups": ["a"]}`), `ResourceConfig.InstanceGroups[0] is the string "a"; it must be an object`},
		{"group without name", resources(`{"InstanceGroups": [{"InstanceType": "a", "InstanceCount": 1}]}`), `InstanceGroups[0].InstanceGroupName is ""`},
		{"groups of one name", resources(`{"InstanceGroups": [{"InstanceGroupName": "g", "InstanceType": "a", "InstanceCount": 1},
			{"InstanceGroupName": "g", "InstanceType": "b", "InstanceCount": 1}]}`), `InstanceGroups[1].InstanceGroupName is "g"`},
		{"groups too many", resources(`{"InstanceGroups": [{"InstanceGroupName": "g", "InstanceType": "a", "InstanceCount": 10000000},
			{"InstanceGroupName": "h", "InstanceType": "b", "InstanceCount": 1}]}`), "ask for 10000001 instances together"},

		{"job name", with(`"TrainingJobName": "a/b"`), `TrainingJobName is "a/b"; it must be 1 to 63 letters`},
		{"long value", with(`"TrainingJobName": "` + strings.Repeat("é", 5000) + `"`), `é…"; it must be`},
		{"entrypoint a string", with(`"AlgorithmSpecification": {"ContainerEntrypoint": "python"}`), `ContainerEntrypoint is the string "python"; it must be a list`},
		{"argument a number", with(`"AlgorithmSpecification": {"ContainerArguments": ["a", 1]}`), `ContainerArguments[1] is the number 1; it must be a string`},
		{"argument with NUL", with(`"AlgorithmSpecification": {"ContainerEntrypoint": ["a\u0000"]}`), "NUL"},
		{"hyperparameter", with(`"HyperParameters": {"epochs": 3}`), "HyperParameters.epochs is the number 3; it must be a string"},
		{"variable name", with(`"Environment": {"A=B": "1"}`), `Environment has a variable named "A=B"`},
		{"variable with NUL", with(`"Environment": {"A": "\u0000"}`), "Environment.A contains a NUL"},
		{"channel name", with(`"InputDataConfig": [{"ChannelName": ".."}]`), `InputDataConfig[0].ChannelName is ".."`},
		{"channel path", with(`"InputDataConfig": [{"ChannelName": "a/b"}]`), `InputDataConfig[0].ChannelName is "a/b"`},
		{"channel twice", with(`"InputDataConfig": [{"ChannelName": "a"}, {"ChannelName": "a"}]`), `InputDataConfig[1].ChannelName is "a", as that of an earlier`},
		{"checkpoint path", with(`"CheckpointConfig": {"LocalPath": "ckpt"}`), `CheckpointConfig.LocalPath is "ckpt"; it must be an absolute path`},
		{"volume", with(`"StoppingCondition": {}, "OutputDataConfig": []`), "OutputDataConfig is a list; it must be an object"},
		{"runtime", with(`"StoppingCondition": {"MaxRuntimeInSeconds": 0}`), "StoppingCondition.MaxRuntimeInSeconds is the number 0; "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Parse(tt.payload)
			if err == nil {
				t.Fatalf("accepted as %+v", r)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is\n  %s\nwant one with\n  %s", err, tt.want)
			}
			if len(err.Error()) > 400 {
				t.Errorf("error is %d bytes long", len(err.Error()))
			}
		})
	}
}

func TestDemandCountsEveryWorkerOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &Request{Groups: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Group {
			return Group{
				InstanceType:  rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "type"),
				InstanceCount: rapid.IntRange(1, 20).Draw(t, "count"),
			}
		}), 1, 8).Draw(t, "groups")}
		counted := map[string]int64{}
		for _, instance := range r.Instances() {
			counted[instance.Type]++
		}
		previous := ""
		for _, a := range r.Demand() {
			if a.Unit <= previous {
				t.Fatalf("%q comes after %q", a.Unit, previous)
			}
			if counted[a.Unit] != a.Quantity {
				t.Fatalf("%s: demand %d, workers %d", a.Unit, a.Quantity, counted[a.Unit])
			}
			delete(counted, a.Unit)
			previous = a.Unit
		}
		if len(counted) != 0 {
			t.Fatalf("no demand for %v", counted)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		full, ``, `null`, `[]`, `{}`, `{"ResourceConfig": {"InstanceType": "a", "InstanceCount": 1}}`,
		`{"ResourceConfig": {"InstanceGroups": [{"InstanceGroupName": "g", "InstanceType": "a", "InstanceCount": 2}]}}`,
		`{"ResourceConfig": {"InstanceType": "a", "InstanceCount": 1e9}}`, `{"A": {"A": [[[{}]]]}, "A": 0}`, "{\"\xff\": \"\\ud800\"}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		r, err := Parse(payload)
		if err != nil {
			if r != nil {
				t.Errorf("a request beside the error %v", err)
			}
			return
		}
		if r.Workers() < 1 || r.Workers() > MaxInstances || len(r.Demand()) == 0 || r.MaxRuntime() <= 0 {
			t.Errorf("accepted %q as %+v", payload, r)
		}
		if !utf8.ValidString(strings.Join(r.Algorithm.Command(), "")) {
			t.Errorf("command %q is not UTF-8", r.Algorithm.Command())
		}
	})
}
