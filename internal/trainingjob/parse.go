package trainingjob

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
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
	doc, err := readDocument(payload)
	if err != nil {
		return nil, err
	}
	f := &fields{}
	r := &Request{
		TrainingJobName:   f.text(doc, "TrainingJobName"),
		Algorithm:         f.algorithm(f.object(doc, "AlgorithmSpecification")),
		HyperParameters:   f.textMap(doc, "HyperParameters"),
		Environment:       f.environment(doc),
		Channels:          f.channels(doc),
		OutputPath:        f.text(f.object(doc, "OutputDataConfig"), "S3OutputPath"),
		Checkpoints:       f.checkpoints(f.object(doc, "CheckpointConfig")),
		Groups:            f.groups(doc),
		VolumeSizeInGB:    f.volume(f.object(doc, "ResourceConfig")),
		StoppingCondition: f.stoppingCondition(f.object(doc, "StoppingCondition")),
	}
	if r.TrainingJobName != "" && !jobNamePattern.MatchString(r.TrainingJobName) {
		f.fail("TrainingJobName is %s; it must be 1 to 63 letters, digits and hyphens, with a letter or digit at both ends", quote(r.TrainingJobName))
	}
	if f.err != nil {
		return nil, f.err
	}
	return r, nil
}

func (f *fields) algorithm(o object) Algorithm {
	a := Algorithm{
		TrainingImage: f.text(o, "TrainingImage"),
		AlgorithmName: f.text(o, "AlgorithmName"),
		InputMode:     f.text(o, "TrainingInputMode"),
		Entrypoint:    f.texts(o, "ContainerEntrypoint"),
		Arguments:     f.texts(o, "ContainerArguments"),
	}
	if slices.ContainsFunc(a.Command(), hasNUL) {
		f.fail("%s and ContainerArguments contain a NUL character; a command line cannot", o.at("ContainerEntrypoint"))
	}
	return a
}

func (f *fields) environment(doc object) map[string]string {
	const field = "Environment"
	environment := f.textMap(doc, field)
	for _, name := range slices.Sorted(maps.Keys(environment)) { // in order, so that the same request gets the same error
		if !variablePattern.MatchString(name) {
			f.fail("%s has a variable named %s; a name must be letters, digits and underscores, and not start with a digit", field, quote(name))
		}
		if hasNUL(environment[name]) {
			f.fail("%s.%s contains a NUL character; an environment variable cannot", field, name)
		}
	}
	return environment
}

func (f *fields) channels(doc object) []Channel {
	var channels []Channel
	seen := map[string]bool{}
	for _, o := range f.objects(doc, "InputDataConfig") {
		c := f.channel(o)
		if seen[c.Name] {
			f.fail("%s is %s, as that of an earlier channel; names must differ", o.at("ChannelName"), quote(c.Name))
		}
		seen[c.Name] = true
		channels = append(channels, c)
	}
	return channels
}

func (f *fields) channel(o object) Channel {
	source := f.object(o, "DataSource")
	s3 := f.object(source, "S3DataSource")
	c := Channel{
		Name:              f.text(o, "ChannelName"),
		ContentType:       f.text(o, "ContentType"),
		InputMode:         f.text(o, "InputMode"),
		RecordWrapperType: f.text(o, "RecordWrapperType"),
		Distribution:      f.text(s3, "S3DataDistributionType"),
		URI:               f.text(s3, "S3Uri"),
	}
	if c.URI == "" {
		c.URI = f.text(f.object(source, "FileSystemDataSource"), "DirectoryPath")
	}
	if !channelNamePattern.MatchString(c.Name) || c.Name == "." || c.Name == ".." {
		f.fail("%s is %s; it must be 1 to 64 letters, digits, dots, hyphens and underscores", o.at("ChannelName"), quote(c.Name))
	}
	if hasNUL(c.URI) {
		f.fail("%s contains a NUL character in its location; a path cannot", source.path)
	}
	return c
}

func (f *fields) checkpoints(o object) Checkpoints {
	c := Checkpoints{S3URI: f.text(o, "S3Uri"), LocalPath: f.text(o, "LocalPath")}
	if c.LocalPath == "" {
		c.LocalPath = DefaultCheckpointPath
	}
	if !strings.HasPrefix(c.LocalPath, "/") || hasNUL(c.LocalPath) {
		f.fail("%s is %s; it must be an absolute path such as %s", o.at("LocalPath"), quote(c.LocalPath), DefaultCheckpointPath)
	}
	return c
}

// groups reads what the job runs on: InstanceType and InstanceCount, or
// InstanceGroups, never both.
func (f *fields) groups(doc object) []Group {
	const field = "ResourceConfig"
	if !doc.has(field) {
		f.fail(`%s is missing; it must say what to run on, such as {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1}`, field)
		return nil
	}
	o := f.object(doc, field)
	if !o.has("InstanceGroups") {
		return []Group{f.group(o, HomogeneousGroup)}
	}
	if o.has("InstanceType") || o.has("InstanceCount") {
		f.fail("%s has both InstanceGroups and InstanceType or InstanceCount; give one or the other", field)
		return nil
	}
	return f.instanceGroups(o)
}

func (f *fields) instanceGroups(o object) []Group {
	var groups []Group
	total := 0
	for _, member := range f.objects(o, "InstanceGroups") {
		g := f.group(member, f.text(member, "InstanceGroupName"))
		named := func(other Group) bool { return other.Name == g.Name }
		if g.Name == "" || slices.ContainsFunc(groups, named) {
			f.fail("%s is %s; each group needs a name of its own", member.at("InstanceGroupName"), quote(g.Name))
		}
		total += g.InstanceCount
		groups = append(groups, g)
	}
	if len(groups) == 0 {
		f.fail("%s is empty; it must name at least one group", o.at("InstanceGroups"))
	}
	if total > MaxInstances {
		f.fail("%s ask for %d instances together; at most %d are possible", o.at("InstanceGroups"), total, MaxInstances)
	}
	return groups
}

func (f *fields) group(o object, name string) Group {
	g := Group{
		Name:          name,
		InstanceType:  f.text(o, "InstanceType"),
		InstanceCount: int(f.number(o, "InstanceCount", MaxInstances)),
	}
	if g.InstanceType == "" {
		f.fail("%s is missing; it must be an instance type such as ml.g5.xlarge", o.at("InstanceType"))
	}
	return g
}

func (f *fields) volume(o object) int64 {
	const field = "VolumeSizeInGB"
	if !o.has(field) {
		return 0
	}
	return f.number(o, field, MaxInstances)
}

func (f *fields) stoppingCondition(o object) StoppingCondition {
	const field = "MaxRuntimeInSeconds"
	if !o.has(field) {
		return StoppingCondition{}
	}
	return StoppingCondition{MaxRuntime: time.Duration(f.number(o, field, maxRuntimeSeconds)) * time.Second}
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }
