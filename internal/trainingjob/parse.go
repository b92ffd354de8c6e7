package trainingjob

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/document"
)

// Patterns of names that become paths, ARNs or variables, as SageMaker has
// them.
var (
	jobNamePattern     = regexp.MustCompile(`^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$`)
	channelNamePattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	variablePattern    = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

// maxRuntimeSeconds keeps a runtime within what a time.Duration can hold.
const maxRuntimeSeconds = 1_000_000_000

// Parse reads a CreateTrainingJob request. Fields it does not know are
// ignored. The error of a request that cannot be run says which field is
// wrong, what it is, and what would be right; it is written for the person
// who sent it. A job that is merely larger than any pool is well-formed.
func Parse(payload string) (*Request, error) {
	doc, err := document.Read([]byte(payload))
	if err != nil {
		return nil, err
	}
	r := &Request{
		TrainingJobName:   doc.Text("TrainingJobName"),
		Algorithm:         algorithm(doc.Object("AlgorithmSpecification")),
		HyperParameters:   doc.TextMap("HyperParameters"),
		Environment:       environment(doc),
		Channels:          channels(doc),
		OutputPath:        doc.Object("OutputDataConfig").Text("S3OutputPath"),
		Checkpoints:       checkpoints(doc.Object("CheckpointConfig")),
		Groups:            groups(doc),
		VolumeSizeInGB:    volume(doc.Object("ResourceConfig")),
		StoppingCondition: stoppingCondition(doc.Object("StoppingCondition")),
	}
	if r.TrainingJobName != "" && !jobNamePattern.MatchString(r.TrainingJobName) {
		doc.Fail("TrainingJobName is %s; it must be 1 to 63 letters, digits and hyphens, with a letter or digit at both ends", document.Quote(r.TrainingJobName))
	}
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return r, nil
}

func algorithm(o document.Object) Algorithm {
	a := Algorithm{
		TrainingImage: o.Text("TrainingImage"),
		AlgorithmName: o.Text("AlgorithmName"),
		InputMode:     o.Text("TrainingInputMode"),
		Entrypoint:    o.Texts("ContainerEntrypoint"),
		Arguments:     o.Texts("ContainerArguments"),
	}
	if slices.ContainsFunc(a.Command(), hasNUL) {
		o.Fail("%s and ContainerArguments contain a NUL character; a command line cannot", o.At("ContainerEntrypoint"))
	}
	return a
}

func environment(doc document.Object) map[string]string {
	const field = "Environment"
	variables := doc.TextMap(field)
	for _, name := range slices.Sorted(maps.Keys(variables)) { // in order, so that the same request gets the same error
		if !variablePattern.MatchString(name) {
			doc.Fail("%s has a variable named %s; a name must be letters, digits and underscores, and not start with a digit", field, document.Quote(name))
		}
		if hasNUL(variables[name]) {
			doc.Fail("%s.%s contains a NUL character; an environment variable cannot", field, name)
		}
	}
	return variables
}

func channels(doc document.Object) []Channel {
	var all []Channel
	seen := map[string]bool{}
	for _, o := range doc.Objects("InputDataConfig") {
		c := channel(o)
		if seen[c.Name] {
			o.Fail("%s is %s, as that of an earlier channel; names must differ", o.At("ChannelName"), document.Quote(c.Name))
		}
		seen[c.Name] = true
		all = append(all, c)
	}
	return all
}

func channel(o document.Object) Channel {
	source := o.Object("DataSource")
	s3 := source.Object("S3DataSource")
	c := Channel{
		Name:              o.Text("ChannelName"),
		ContentType:       o.Text("ContentType"),
		InputMode:         o.Text("InputMode"),
		RecordWrapperType: o.Text("RecordWrapperType"),
		Distribution:      s3.Text("S3DataDistributionType"),
		URI:               s3.Text("S3Uri"),
	}
	if c.URI == "" {
		c.URI = source.Object("FileSystemDataSource").Text("DirectoryPath")
	}
	if !channelNamePattern.MatchString(c.Name) || c.Name == "." || c.Name == ".." {
		o.Fail("%s is %s; it must be 1 to 64 letters, digits, dots, hyphens and underscores", o.At("ChannelName"), document.Quote(c.Name))
	}
	if hasNUL(c.URI) {
		o.Fail("%s contains a NUL character in its location; a path cannot", o.At("DataSource"))
	}
	return c
}

func checkpoints(o document.Object) Checkpoints {
	c := Checkpoints{S3URI: o.Text("S3Uri"), LocalPath: o.Text("LocalPath")}
	if c.LocalPath == "" {
		c.LocalPath = DefaultCheckpointPath
	}
	if !strings.HasPrefix(c.LocalPath, "/") || hasNUL(c.LocalPath) {
		o.Fail("%s is %s; it must be an absolute path such as %s", o.At("LocalPath"), document.Quote(c.LocalPath), DefaultCheckpointPath)
	}
	return c
}

// groups reads what the job runs on: InstanceType and InstanceCount, or
// InstanceGroups, never both.
func groups(doc document.Object) []Group {
	const field = "ResourceConfig"
	if !doc.Has(field) {
		doc.Fail(`%s is missing; it must say what to run on, such as {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1}`, field)
		return nil
	}
	o := doc.Object(field)
	if !o.Has("InstanceGroups") {
		return []Group{group(o, HomogeneousGroup)}
	}
	if o.Has("InstanceType") || o.Has("InstanceCount") {
		doc.Fail("%s has both InstanceGroups and InstanceType or InstanceCount; give one or the other", field)
		return nil
	}
	return instanceGroups(o)
}

func instanceGroups(o document.Object) []Group {
	var all []Group
	total := 0
	for _, member := range o.Objects("InstanceGroups") {
		g := group(member, member.Text("InstanceGroupName"))
		named := func(other Group) bool { return other.Name == g.Name }
		if g.Name == "" || slices.ContainsFunc(all, named) {
			o.Fail("%s is %s; each group needs a name of its own", member.At("InstanceGroupName"), document.Quote(g.Name))
		}
		total += g.InstanceCount
		all = append(all, g)
	}
	if len(all) == 0 {
		o.Fail("%s is empty; it must name at least one group", o.At("InstanceGroups"))
	}
	if total > MaxInstances {
		o.Fail("%s ask for %d instances together; at most %d are possible", o.At("InstanceGroups"), total, MaxInstances)
	}
	return all
}

func group(o document.Object, name string) Group {
	g := Group{
		Name:          name,
		InstanceType:  o.Text("InstanceType"),
		InstanceCount: int(o.Number("InstanceCount", 1, MaxInstances)),
	}
	if g.InstanceType == "" {
		o.Fail("%s is missing; it must be an instance type such as ml.g5.xlarge", o.At("InstanceType"))
	}
	return g
}

func volume(o document.Object) int64 {
	const field = "VolumeSizeInGB"
	if !o.Has(field) {
		return 0
	}
	return o.Number(field, 1, MaxInstances)
}

func stoppingCondition(o document.Object) StoppingCondition {
	const field = "MaxRuntimeInSeconds"
	if !o.Has(field) {
		return StoppingCondition{}
	}
	return StoppingCondition{MaxRuntime: time.Duration(o.Number(field, 1, maxRuntimeSeconds)) * time.Second}
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }
