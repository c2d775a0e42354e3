/** A stored state group and its predecessor in the chain. */
export interface GroupLink {
  readonly id: number;
  readonly prevId: number | undefined;
}

/**
 * A kept group that takes over the changes of the unused groups before it. Afterwards the group links to the
 * predecessor of the first of these unused groups.
 */
export interface Rebase {
  readonly id: number;
  /** The unused groups between the group and its new predecessor, nearest first. */
  readonly through: readonly number[];
  /** The new predecessor; `undefined` when the group stores its whole state from then on. */
  readonly prevId: number | undefined;
}

/** The state groups of a room that are removed or rebased. */
export interface CleanupPlan {
  /**
   * Ids of the groups that are removed, because no used group is built on them. Each group comes before its
   * predecessors.
   */
  readonly removed: readonly number[];
  readonly rebases: readonly Rebase[];
}

/** The state groups of a room, and the groups that events, the room or new groups refer to. */
export interface CleanupInput {
  /** All groups of one room. */
  readonly groups: readonly GroupLink[];
  /** Groups that events or the room refer to. */
  readonly used: ReadonlySet<number>;
  /** Groups on which new groups may be built at any time. Their chains stay as they are. */
  readonly growing: Iterable<number>;
  /** The highest group that may be removed: newer groups may belong to events that are still being written. */
  readonly upTo: number;
}

/** Number of groups that are processed between two pauses for other requests. */
const groupsAtOnce = 10_000;

/**
 * Plans which state groups of a room are removed, and which are rebased. If only one group is built on an unused group,
 * the unused group is merged into that one. This never makes the stored states larger, and the next plan removes the
 * unused group. Other requests are processed meanwhile.
 */
export async function planCleanup({ groups, used, growing, upTo }: CleanupInput): Promise<CleanupPlan> {
  const links = new Map<number, GroupLink>();
  await inSlices(groups, (link) => links.set(link.id, link));
  const needed = new Set<number>();
  await inSlices(groups, ({ id }) => {
    if (used.has(id) || id > upTo) markChain(links, id, needed);
  });
  const fixed = new Set<number>();
  for (const id of growing) markChain(links, id, fixed);
  const isKept = (id: number) => needed.has(id) || fixed.has(id);
  const successors = new Map<number, number>();
  await inSlices(groups, ({ id, prevId }) => {
    if (prevId !== undefined && isKept(id)) successors.set(prevId, (successors.get(prevId) ?? 0) + 1);
  });
  const isMerged = (id: number) =>
    !used.has(id) && !fixed.has(id) && id <= upTo && successors.get(id) === 1 && links.has(id);
  const rebases: Rebase[] = [];
  const removed: number[] = [];
  await inSlices(groups, ({ id, prevId }) => {
    if (!isKept(id)) removed.push(id);
    if (!needed.has(id) || isMerged(id) || fixed.has(id) || id > upTo) return;
    const through: number[] = [];
    let next = prevId;
    for (; next !== undefined && isMerged(next); next = links.get(next)?.prevId) through.push(next);
    if (through.length > 0) rebases.push({ id, through, prevId: next });
  });
  return { removed: removed.sort((a, b) => b - a), rebases };
}

/** Calls `work` for each group, with pauses for other requests. */
async function inSlices(groups: readonly GroupLink[], work: (link: GroupLink) => void): Promise<void> {
  for (let start = 0; start < groups.length; start += groupsAtOnce) {
    if (start > 0) await new Promise(setImmediate);
    for (const link of groups.slice(start, start + groupsAtOnce)) work(link);
  }
}

/** Adds a group and all groups of its chain to `marked`. */
function markChain(links: ReadonlyMap<number, GroupLink>, from: number, marked: Set<number>): void {
  for (let id: number | undefined = from; id !== undefined && !marked.has(id); id = links.get(id)?.prevId)
    marked.add(id);
}
