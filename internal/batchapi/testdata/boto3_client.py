"""Drives a server through every operation with boto3, unchanged but for the
endpoint, region and key that the environment gives it."""

import datetime
import json
import time

import boto3
import botocore
import botocore.config
from botocore.exceptions import ClientError

batch = boto3.client("batch")

PAYLOAD = json.dumps(
    {
        "TrainingJobName": "train",
        "AlgorithmSpecification": {"TrainingInputMode": "File", "ContainerEntrypoint": ["true"]},
        "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    }
)


def wait(what, check):
    """Polls, as users' scripts do, until check returns something."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = check()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


def refused(call, **parameters):
    """Returns the parsed error of a call that must be refused."""
    try:
        call(**parameters)
    except ClientError as error:
        return error
    raise AssertionError(f"{call} accepted {parameters}")


def create_or_find(create, find, **parameters):
    """Creates something, or finds what a former run has left."""
    try:
        return create(**parameters)
    except ClientError as error:
        # Scripts compare this member, the body's own, and not error["Error"]["Message"].
        if error.response["message"] == "Object already exists" or "already exists" in error.response["message"]:
            return find()
        raise


def valid(description, state="ENABLED"):
    if description["status"] == "INVALID":
        raise AssertionError(f"INVALID: {description}")
    return description if description["status"] == "VALID" and description["state"] == state else None


def environment():
    return batch.describe_service_environments(serviceEnvironments=["env"])["serviceEnvironments"][0]


def queue():
    return batch.describe_job_queues(jobQueues=["queue"])["jobQueues"][0]


def policy_arn():
    pages = batch.get_paginator("list_scheduling_policies").paginate(PaginationConfig={"PageSize": 1})
    arns = [policy["arn"] for page in pages for policy in page["schedulingPolicies"]]
    return next(arn for arn in arns if arn.endswith("/policy"))


def share(name):
    return batch.describe_quota_share(quotaShareArn=f"{queue()['jobQueueArn']}/quota-share/{name}")


def create():
    policy = create_or_find(
        batch.create_scheduling_policy,
        lambda: {"arn": policy_arn()},
        name="policy",
        quotaSharePolicy={"idleResourceAssignmentStrategy": "FIFO"},
    )
    create_or_find(
        batch.create_service_environment,
        environment,
        serviceEnvironmentName="env",
        serviceEnvironmentType="SAGEMAKER_TRAINING",
        capacityLimits=[{"capacityUnit": "ml.g5.xlarge", "maxCapacity": 3}],
    )
    wait("the environment", lambda: valid(environment()))
    create_or_find(
        batch.create_job_queue,
        queue,
        jobQueueName="queue",
        jobQueueType="SAGEMAKER_TRAINING",
        state="ENABLED",
        priority=1,
        schedulingPolicyArn=policy["arn"],
        computeEnvironmentOrder=[],
        serviceEnvironmentOrder=[{"order": 1, "serviceEnvironment": "env"}],
    )
    wait("the queue", lambda: valid(queue()))
    for name, strategy in ("QS1", "LEND_AND_BORROW"), ("QS2", "LEND"), ("QS3", "RESERVE"):
        create_or_find(
            batch.create_quota_share,
            lambda: share(name),
            quotaShareName=name,
            jobQueue="queue",
            capacityLimits=[{"capacityUnit": "ml.g5.xlarge", "maxCapacity": 1}],
            resourceSharingConfiguration={"strategy": strategy},
            preemptionConfiguration={"inSharePreemption": "ENABLED"},
            tags={"made-by": "a test"},
        )
        wait(name, lambda: valid(share(name)))


def describe_and_update():
    assert queue()["computeEnvironmentOrder"] == []
    assert queue()["statusReason"] == "JobQueue Healthy"
    assert share("QS1")["resourceSharingConfiguration"] == {"strategy": "LEND_AND_BORROW", "borrowLimit": -1}
    assert share("QS1")["tags"] == {"made-by": "a test"}
    arn = policy_arn()
    described = batch.describe_scheduling_policies(arns=[arn])["schedulingPolicies"]
    assert described[0]["quotaSharePolicy"] == {"idleResourceAssignmentStrategy": "FIFO"}, described
    batch.update_scheduling_policy(arn=arn, quotaSharePolicy={"idleResourceAssignmentStrategy": "FIFO"})
    batch.update_service_environment(
        serviceEnvironment=environment()["serviceEnvironmentArn"],
        capacityLimits=[{"capacityUnit": "ml.g5.xlarge", "maxCapacity": 3}],
    )
    batch.update_job_queue(jobQueue="queue", priority=5)
    assert queue()["priority"] == 5
    batch.update_quota_share(
        quotaShareArn=share("QS1")["quotaShareArn"],
        resourceSharingConfiguration={"strategy": "LEND_AND_BORROW", "borrowLimit": 100},
    )
    pages = batch.get_paginator("list_quota_shares").paginate(jobQueue="queue", PaginationConfig={"PageSize": 2})
    names = [s["quotaShareName"] for page in pages for s in page["quotaShares"]]
    assert names == ["QS1", "QS2", "QS3"], names
    for unknown in (
        batch.describe_job_queues(jobQueues=["none"])["jobQueues"],
        batch.describe_service_environments(serviceEnvironments=["none"])["serviceEnvironments"],
        batch.describe_scheduling_policies(arns=[arn + "x"])["schedulingPolicies"],
    ):
        assert unknown == [], unknown


def tags():
    arn = share("QS2")["quotaShareArn"]
    batch.tag_resource(resourceArn=arn, tags={"a key": "x=1&y", "b/c": "é"})
    batch.untag_resource(resourceArn=arn, tagKeys=["a key", "made-by"])
    assert batch.list_tags_for_resource(resourceArn=arn)["tags"] == {"b/c": "é"}


def submit(name, share_name, **more):
    return batch.submit_service_job(
        jobName=name,
        jobQueue="queue",
        quotaShareName=share_name,
        serviceJobType="SAGEMAKER_TRAINING",
        serviceRequestPayload=PAYLOAD,
        retryStrategy={
            "attempts": 1,
            "evaluateOnExit": [
                {
                    "action": "Retry",
                    "onStatusReason": "Received status from SageMaker:InternalServerError: We encountered an internal error. Please try again.",
                },
                {"action": "EXIT", "onStatusReason": "*"},
            ],
        },
        timeoutConfig={"attemptDurationSeconds": 86400},
        **more,
    )["jobArn"]


def job(arn):
    return batch.describe_service_job(jobId=arn)


def reached(arn, status):
    return wait(f"{arn} to be {status}", lambda: job(arn) if job(arn)["status"] == status else None)


def jobs():
    short = submit("short", "QS1")
    done = reached(short, "SUCCEEDED")
    assert done["statusReason"] == "Received status from SageMaker: Training job completed", done
    assert done["capacityUsage"] == [{"capacityUnit": "ml.g5.xlarge", "quantity": 1.0}], done
    assert isinstance(done["capacityUsage"][0]["quantity"], float), done

    mine, borrowing = submit("mine", "QS1", schedulingPriority=2), submit("borrowing", "QS1", schedulingPriority=1)
    reached(mine, "RUNNING")
    reached(borrowing, "RUNNING")
    owner = submit("owner", "QS2")
    reached(owner, "RUNNING")
    preempted = wait("the borrower to be preempted", lambda: job(borrowing).get("preemptionSummary"))
    assert preempted["preemptedAttemptCount"] == 1, preempted
    reason = preempted["recentPreemptedAttempts"][0]["statusReason"]
    assert reason == "Preempted: capacity reclaimed by quota share QS2", reason

    batch.update_service_job(jobId=mine, schedulingPriority=7)
    assert job(mine)["schedulingPriority"] == 7

    def listed(**parameters):
        return [j["jobName"] for j in batch.list_service_jobs(jobQueue="queue", **parameters)["jobSummaryList"]]

    assert listed() == ["owner", "mine"], listed()
    assert listed(jobStatus="RUNNABLE") == ["borrowing"]
    assert listed(filters=[{"name": "JOB_NAME", "values": ["SHORT"]}]) == ["short"]
    assert listed(jobStatus="RUNNING", filters=[{"name": "QUOTA_SHARE_NAME", "values": ["QS1"]}]) == ["mine"]
    tomorrow = int((time.time() + 86400) * 1000)
    assert listed(filters=[{"name": "AFTER_CREATED_AT", "values": [str(tomorrow)]}]) == []
    pages = batch.get_paginator("list_service_jobs").paginate(
        jobQueue="queue", filters=[{"name": "JOB_NAME", "values": ["*"]}], PaginationConfig={"PageSize": 1}
    )
    assert [j["jobName"] for page in pages for j in page["jobSummaryList"]] == ["owner", "borrowing", "mine", "short"]

    snapshot = batch.get_job_queue_snapshot(jobQueue="queue")
    fronts = snapshot["frontOfQuotaShares"]["quotaShares"]
    assert [j["jobArn"] for j in fronts["QS1"]] == [borrowing] and fronts["QS2"] == [], snapshot
    assert snapshot["queueUtilization"]["totalCapacityUsage"] == [{"capacityUnit": "ml.g5.xlarge", "quantity": 2.0}]

    batch.terminate_service_job(jobId=borrowing, reason="Default terminate reason")
    gone = reached(borrowing, "FAILED")
    assert gone["isTerminated"] and gone["statusReason"] == "Default terminate reason", gone
    answer = batch.terminate_service_jobs(jobs=[mine, owner, "unknown"], reason="the test is over")
    assert answer["successful"] == [mine, owner, "unknown"] and answer["errors"] == [], answer
    for arn in mine, owner:
        assert reached(arn, "FAILED")["isTerminated"]


def refusals():
    error = refused(batch.submit_service_job, jobName="a b", jobQueue="queue", serviceJobType="SAGEMAKER_TRAINING", serviceRequestPayload=PAYLOAD)
    assert error.response["Error"]["Code"] == "ClientException", error.response
    assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 400, error.response
    assert error.response["ResponseMetadata"]["RequestId"], error.response
    assert isinstance(error, batch.exceptions.ClientException)

    def code(**session):
        config = session.pop("config", None)
        client = boto3.Session(**session).client("batch", config=config)
        error = refused(client.describe_job_queues)
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 403, error.response
        return error.response["Error"]["Code"]

    unsigned = botocore.config.Config(signature_version=botocore.UNSIGNED)
    right = boto3.Session().get_credentials()
    assert code(config=unsigned) == "MissingAuthenticationTokenException"
    assert code(aws_access_key_id=right.access_key, aws_secret_access_key="wrong") == "InvalidSignatureException"
    assert code(aws_access_key_id="AKIAUNKNOWN", aws_secret_access_key=right.secret_key) == "UnrecognizedClientException"
    assert code(region_name="eu-west-1") == "InvalidSignatureException"


def delete():
    for name in "QS1", "QS2", "QS3":
        arn = share(name)["quotaShareArn"]
        refused(batch.delete_quota_share, quotaShareArn=arn)
        batch.update_quota_share(quotaShareArn=arn, state="DISABLED")
        wait(f"{name} to be disabled", lambda: valid(share(name), "DISABLED"))
        batch.delete_quota_share(quotaShareArn=arn)

        def is_gone():
            try:
                batch.describe_quota_share(quotaShareArn=arn)
            except ClientError as error:
                return "does not exist" in error.response["message"]
            return False

        wait(f"{name} to be gone", is_gone)
    arn = policy_arn()
    refused(batch.delete_scheduling_policy, arn=arn)
    batch.update_job_queue(jobQueue="queue", state="DISABLED")
    wait("the queue to be disabled", lambda: valid(queue(), "DISABLED"))
    batch.delete_job_queue(jobQueue="queue")
    wait("the queue to be gone", lambda: not batch.describe_job_queues(jobQueues=["queue"])["jobQueues"])
    batch.delete_scheduling_policy(arn=arn)
    batch.update_service_environment(serviceEnvironment="env", state="DISABLED")
    wait("the environment to be disabled", lambda: valid(environment(), "DISABLED"))
    batch.delete_service_environment(serviceEnvironment="env")
    wait(
        "the environment to be gone",
        lambda: not batch.describe_service_environments(serviceEnvironments=["env"])["serviceEnvironments"],
    )


def fair_share():
    distribution = [{"shareIdentifier": "teamA*", "weightFactor": 0.125}, {"shareIdentifier": "teamB"}]
    arn = batch.create_scheduling_policy(
        name="byuse", fairsharePolicy={"shareDecaySeconds": 3600, "computeReservation": 0, "shareDistribution": distribution}
    )["arn"]
    distribution[1]["weightFactor"] = 1.0
    described = batch.describe_scheduling_policies(arns=[arn])["schedulingPolicies"][0]["fairsharePolicy"]
    assert described == {"shareDecaySeconds": 3600, "computeReservation": 0, "shareDistribution": distribution}, described
    error = refused(batch.create_scheduling_policy, name="both", fairsharePolicy={}, quotaSharePolicy={"idleResourceAssignmentStrategy": "FIFO"})
    assert "either fairsharePolicy or quotaSharePolicy" in error.response["message"], error.response
    batch.create_service_environment(
        serviceEnvironmentName="counted",
        serviceEnvironmentType="SAGEMAKER_TRAINING",
        capacityLimits=[{"capacityUnit": "NUM_INSTANCES", "maxCapacity": 1}],
    )
    batch.create_job_queue(
        jobQueueName="fair",
        jobQueueType="SAGEMAKER_TRAINING",
        priority=1,
        schedulingPolicyArn=arn,
        serviceEnvironmentOrder=[{"order": 1, "serviceEnvironment": "counted"}],
    )

    def submit_fairly(name, identifier):
        return batch.submit_service_job(
            jobName=name,
            jobQueue="fair",
            shareIdentifier=identifier,
            serviceJobType="SAGEMAKER_TRAINING",
            serviceRequestPayload=PAYLOAD,
        )["jobArn"]

    error = refused(submit_fairly, name="whose", identifier="")
    assert "shareIdentifier is required" in error.response["message"], error.response
    first, second, third = submit_fairly("first", "teamB"), submit_fairly("second", "teamB"), submit_fairly("third", "teamA7")
    assert reached(first, "RUNNING")["shareIdentifier"] == "teamB"
    snapshot = batch.get_job_queue_snapshot(jobQueue="fair")
    assert [j["jobArn"] for j in snapshot["frontOfQueue"]["jobs"]] == [third, second], snapshot
    used = [{"capacityUnit": "NUM_INSTANCES", "quantity": 1.0}]
    assert snapshot["queueUtilization"]["totalCapacityUsage"] == used, snapshot
    assert snapshot["queueUtilization"]["fairshareUtilization"] == {
        "activeShareCount": 1,
        "topCapacityUtilization": [{"shareIdentifier": "teamB", "capacityUsage": used}],
    }, snapshot
    listed = batch.list_service_jobs(jobQueue="fair", filters=[{"name": "SHARE_IDENTIFIER", "values": ["teamA7"]}])["jobSummaryList"]
    assert [(j["jobName"], j["shareIdentifier"]) for j in listed] == [("third", "teamA7")], listed
    batch.terminate_service_job(jobId=first, reason="enough")
    reached(third, "RUNNING")
    assert job(second)["status"] == "RUNNABLE"

    batch.update_job_queue(jobQueue="fair", state="DISABLED")
    batch.delete_job_queue(jobQueue="fair")
    assert reached(second, "FAILED")["statusReason"] == "Job queue fair was deleted"
    wait("the queue to be gone", lambda: not batch.describe_job_queues(jobQueues=["fair"])["jobQueues"])
    batch.delete_scheduling_policy(arn=arn)
    batch.update_service_environment(serviceEnvironment="counted", state="DISABLED")
    batch.delete_service_environment(serviceEnvironment="counted")


for step in create, create, describe_and_update, tags, jobs, fair_share, refusals, delete:
    started = datetime.datetime.now()
    step()
    print(f"{step.__name__}: {datetime.datetime.now() - started}")
