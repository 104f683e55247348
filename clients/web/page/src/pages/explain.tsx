import { useState } from "preact/hooks";
import { ApiError, call, type Explanation, type Job, type Plan, type Remedy } from "../api";
import { number, reasonText } from "../format";
import { useLoad } from "../live";
import { type Action, ActionDialog, Bar, ErrorNote, Heads, Show, Table, Time } from "../parts";
import { pathTo } from "../router";

// What each constraint takes away, in the order in which they are applied.
function Constraints({ group }: { group: NonNullable<Explanation["groups"]>[number] }) {
  const all = group.nodes ?? 0;
  let left = all;
  return (
    <>
      <Table caption={`Nodes for group ${group.group}: ${number(group.neededTasks)} tasks need places`} head={<Heads names={["Constraint", "Left", "Takes away", "Nodes left after it", "Alone it rejects"]} />}>
        <tr>
          <th scope="row">all nodes</th>
          <td>
            <Bar label="left" total={all} parts={[{ label: "nodes", value: all, tone: "fill-used" }]} />
          </td>
          <td class="number">0</td>
          <td class="number">{number(all)}</td>
          <td />
        </tr>
        {(group.constraints ?? []).map((constraint) => {
          const taken = constraint.nodesInOrder ?? 0;
          left -= taken;
          return (
            <tr key={constraint.name} class={group.blocking?.includes(constraint.name) ? "blocking" : undefined}>
              <th scope="row">
                {constraint.name}
                {group.blocking?.includes(constraint.name) && " (blocks)"}
              </th>
              <td>
                <Bar
                  label={constraint.name}
                  total={all}
                  parts={[
                    { label: "left", value: left, tone: "fill-used" },
                    { label: "taken away", value: taken, tone: "fill-taken" },
                  ]}
                />
              </td>
              <td class="number">{number(taken)}</td>
              <td class="number">{number(left)}</td>
              <td class="number">{number(constraint.nodesAlone)}</td>
            </tr>
          );
        })}
      </Table>
      <p>
        {number(group.nodesLeft)} nodes pass all of them; {number(group.tasksLeft)} of {number(group.neededTasks)} tasks fit there now.
      </p>
    </>
  );
}

const FIELD = /^([a-zA-Z_]+)(?:\[(\d+)\])?$/;
const jsonName = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

// The specification with the field of the remedy set.
export function changed(spec: object, field: string, value: string): object {
  const copy = structuredClone(spec) as Record<string, unknown>;
  const parts = field.replace(/^spec\./, "").split(".");
  let at: Record<string, unknown> = copy;
  parts.forEach((part, i) => {
    const match = FIELD.exec(part);
    if (!match) throw new ApiError("unimplemented", `this page cannot change ${field}; edit the manifest`);
    const key = jsonName(match[1]!);
    const last = i === parts.length - 1;
    if (match[2] !== undefined) {
      const list = at[key];
      const entry: unknown = Array.isArray(list) ? list[Number(match[2])] : undefined;
      if (last || typeof entry !== "object" || entry === null) throw new ApiError("unimplemented", `this page cannot change ${field}; edit the manifest`);
      at = entry as Record<string, unknown>;
    } else if (last) {
      at[key] = /^-?\d+$/.test(value) ? Number(value) : value === "true" ? true : value === "false" ? false : value;
    } else {
      at[key] ??= {};
      at = at[key] as Record<string, unknown>;
    }
  });
  return copy;
}

// What has to start together shrinks with it.
function fewerTasks(spec: object, remedy: Remedy): object {
  const smaller = changed(spec, remedy.field ?? "", remedy.value ?? "") as { minAvailable?: number; groups?: { minAvailable?: number; replicas?: number }[] };
  delete smaller.minAvailable;
  for (const group of smaller.groups ?? []) {
    if ((group.minAvailable ?? 0) > (group.replicas ?? 1)) group.minAvailable = group.replicas ?? 1;
  }
  return smaller;
}

function planText(plan: Plan): string {
  if (plan.exhausted) return "The server's limit of work for one request ran out.";
  const nodes = new Set((plan.placements ?? []).map((task) => task.node)).size;
  if (plan.startsNow) return `It would start now: ${plan.placements?.length ?? 0} tasks on ${nodes} nodes.`;
  return `It would not start at once: ${plan.blockers?.[0] ? reasonText(plan.blockers[0]) : "no reason is given"}.`;
}

function DryRun({ job, remedy }: { job: Job; remedy: Remedy }) {
  const [plan, setPlan] = useState<Plan>();
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const [action, setAction] = useState<Action>();
  if (remedy.kind === "WAIT" || !remedy.field) return null;
  const run = () => {
    setBusy(true);
    setError(undefined);
    Promise.resolve()
      .then(() => {
        const spec = remedy.kind === "FEWER_TASKS" ? fewerTasks(job.spec ?? {}, remedy) : remedy.walltime ? { ...job.spec, walltime: remedy.walltime } : changed(job.spec ?? {}, remedy.field!, remedy.value ?? "");
        return call<Plan>("ExplainService.PlanJob", { job: { name: "", spec } });
      })
      .then(setPlan, (failure: unknown) => setError(failure instanceof ApiError ? failure : new ApiError("internal", String(failure))))
      .finally(() => setBusy(false));
  };
  const apply = () =>
    setAction({
      title: `Shorten the walltime of ${job.name}`,
      command: `berth job update ${job.name} --walltime ${remedy.value ?? remedy.walltime}`,
      run: (id) => call("JobService.UpdateJob", { job: { name: job.name, spec: { walltime: remedy.walltime } }, updateMask: "spec.walltime" }, undefined, id),
    });
  return (
    <div>
      <button type="button" disabled={busy} onClick={run}>
        Dry run
      </button>
      <ErrorNote error={error} />
      {plan && (
        <div class={`note ${plan.startsNow ? "good" : "wait"}`} role="status">
          <p>{planText(plan)}</p>
          {(plan.evictions ?? []).length > 0 && (
            <ul>
              {plan.evictions?.map((eviction) => (
                <li key={eviction.job}>
                  makes way: <bdi>{eviction.job || "a job that you may not see"}</bdi>, {number(eviction.tasks)} tasks
                </li>
              ))}
            </ul>
          )}
          {remedy.kind === "SHORTER_WALLTIME" && (
            <button type="button" class="primary" onClick={apply}>
              Change the job
            </button>
          )}
        </div>
      )}
      {action && <ActionDialog action={action} close={() => setAction(undefined)} />}
    </div>
  );
}

export function Explain({ job }: { job: Job }) {
  const loaded = useLoad((signal) => call<Explanation>("ExplainService.ExplainJob", { job: job.name }, signal), [job.name], () => true, 5000);
  return (
    <Show of={loaded}>
      {(why) => (
        <>
          {(why.reasons ?? []).length === 0 ? (
            <p>It is not waiting.</p>
          ) : (
            <ol>
              {why.reasons?.map((reason, i) => (
                <li key={i}>
                  <bdi>{reasonText(reason)}</bdi>
                </li>
              ))}
            </ol>
          )}
          {why.position ? (
            <p>
              Place {number(why.position)} of {number(why.queueJobs)} in its queue.
            </p>
          ) : null}
          {why.estimate && (
            <p>
              {why.estimate.unknown ? (
                `When it starts is not known: ${why.estimate.unknown}`
              ) : why.estimate.likely ? (
                <>
                  Likely start <Time at={why.estimate.likely} />, between <Time at={why.estimate.earliest} /> and <Time at={why.estimate.latest} />.
                </>
              ) : null}
            </p>
          )}
          {why.reservation?.start && (
            <p>
              Reserved from <Time at={why.reservation.start} /> on {number(why.reservation.nodes?.length)} nodes.
            </p>
          )}
          {(why.groups ?? []).map((group) => (
            <Constraints key={group.group} group={group} />
          ))}
          {(why.holders ?? []).length > 0 && (
            <Table caption="Who holds what it needs" head={<Heads names={["Job", "Queue", "Amount", "Until"]} />}>
              {why.holders?.map((holder, i) => (
                <tr key={i}>
                  <th scope="row">{holder.job ? <a href={pathTo("job", holder.job)}>{holder.job}</a> : "not shown to you"}</th>
                  <td>{holder.queue}</td>
                  <td class="number">{number(holder.amount)}</td>
                  <td>
                    <Time at={holder.ends} />
                  </td>
                </tr>
              ))}
            </Table>
          )}
          {(why.remedies ?? []).length > 0 && (
            <>
              <h3>What would start it</h3>
              <ul class="plain">
                {why.remedies?.map((remedy, i) => (
                  <li key={i} class="card">
                    <bdi>{remedy.detail || `${remedy.field}: ${remedy.value}`}</bdi>
                    {remedy.field && (
                      <p>
                        <code>
                          {remedy.field}: {remedy.value}
                        </code>
                      </p>
                    )}
                    <DryRun job={job} remedy={remedy} />
                  </li>
                ))}
              </ul>
            </>
          )}
        </>
      )}
    </Show>
  );
}
