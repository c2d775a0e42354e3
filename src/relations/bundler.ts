import {
  bundleRelations,
  canBeThreadRoot,
  type JsonObject,
  latestReplacement,
  summariseThread,
  type ThreadSummary,
} from '../protocol/index.ts';
import {
  type IgnoredUserLists,
  type RoomReader,
  type StoredEvent,
  visibleContent,
} from '../room-engine/index.ts';
import type { ClientEvents, Viewer, VisibleEvent } from '../rooms/index.ts';
import type { Child } from './child.ts';
import { ChildrenInView } from './children-in-view.ts';
import type { RelationIndex } from './relation-index.ts';
import { countReplies, maxReadReplies } from './store.ts';

export interface BundlerDeps {
  readonly engine: RoomReader;
  readonly clientEvents: ClientEvents;
  readonly index: RelationIndex;
  readonly ignored: IgnoredUserLists;
}

/** Maximum number of edits of an event among which the latest valid edit is searched. */
const maxEdits = 20;
/** Maximum number of references to an event that are listed. */
const maxReferences = 500;

/** The aggregations of an event. The edit and the latest reply are not rendered for the client yet. */
interface UnrenderedAggregations {
  readonly parent: StoredEvent;
  readonly replacement: VisibleEvent | undefined;
  readonly thread: ThreadSummary<VisibleEvent> | undefined;
  readonly references: readonly string[];
}

/** Makes bundled aggregations. Source: client-server API, "Aggregations of child events". */
export class Bundler {
  readonly #deps: BundlerDeps;

  constructor(deps: BundlerDeps) {
    this.#deps = deps;
  }

  /** Returns the nids of the events that may have aggregations for some user. */
  parents(events: readonly VisibleEvent[]): ReadonlySet<number> | Promise<ReadonlySet<number>> {
    const { index } = this.#deps;
    const nids = new Set<number>();
    for (const { stored } of events) {
      if (stored.event.stateKey !== undefined) continue;
      const children = index.peek(stored.event.eventId);
      if (!children) return this.#readParents(events);
      if (children.some((child) => isInSameRoom(child, stored))) nids.add(stored.nid);
    }
    return nids;
  }

  /** Returns `m.relations` by the nid of the event; events without aggregations are absent. */
  async bundled(events: readonly VisibleEvent[], viewer: Viewer): Promise<ReadonlyMap<number, JsonObject>> {
    const bundles = new Map<number, JsonObject>();
    const parents = await this.parents(events);
    // With an empty user id, one text is rendered for all users; aggregations differ between users.
    if (parents.size === 0 || viewer.userId === '') return bundles;
    const { clientEvents } = this.#deps;
    const aggregations = await this.#readAggregations(
      events.filter(({ stored }) => parents.has(stored.nid)),
      viewer.userId,
    );
    const shown = aggregations.flatMap(({ replacement, thread }) =>
      [replacement, thread?.latestEvent].filter((event) => event !== undefined),
    );
    const rendered = await clientEvents.render(shown, viewer);
    const json = (event: VisibleEvent) => rendered[shown.indexOf(event)] as JsonObject;
    for (const { parent, replacement, thread, references } of aggregations) {
      const bundle = bundleRelations(parent.event, {
        replacement: replacement && json(replacement),
        thread: thread && { ...thread, latestEvent: json(thread.latestEvent) },
        references,
      });
      if (bundle) bundles.set(parent.nid, bundle);
    }
    return bundles;
  }

  async #readParents(events: readonly VisibleEvent[]): Promise<ReadonlySet<number>> {
    const messages = events.map(({ stored }) => stored).filter(({ event }) => event.stateKey === undefined);
    const children = await this.#deps.index.children(messages.map(({ event }) => event.eventId));
    const parents = messages.filter((stored) =>
      children.get(stored.event.eventId)?.some((child) => isInSameRoom(child, stored)),
    );
    return new Set(parents.map(({ nid }) => nid));
  }

  async #readAggregations(
    parents: readonly VisibleEvent[],
    userId: string,
  ): Promise<UnrenderedAggregations[]> {
    const { engine, index, ignored } = this.#deps;
    const ignoredUsers = await ignored.of(userId);
    const children = await index.children(parents.map(({ stored }) => stored.event.eventId));
    const views = new Map<string, ChildrenInView>();
    const aggregations: UnrenderedAggregations[] = [];
    for (const { stored } of parents) {
      const { roomId, eventId } = stored.event;
      const head = await engine.heads.get(roomId);
      if (!head) continue;
      const view = views.get(roomId) ?? (await ChildrenInView.open(engine, head, userId));
      views.set(roomId, view);
      const allChildren = children.get(eventId) ?? [];
      const relevantChildren = allChildren.filter(
        (child) => isInSameRoom(child, stored) && !ignoredUsers.has(child.sender),
      );
      const ofType = (relType: string) => relevantChildren.filter((child) => child.relType === relType);
      aggregations.push({
        parent: stored,
        replacement: await replacementOf(view, stored, ofType('m.replace')),
        thread: await this.#summarise(view, stored, ofType('m.thread'), {
          userId,
          hasMore: hasMoreReplies(allChildren),
        }),
        references: await this.#referencesOf(view, ofType('m.reference')),
      });
    }
    return aggregations;
  }

  async #referencesOf(view: ChildrenInView, references: readonly Child[]): Promise<string[]> {
    const visible = await view.visible(references.slice(-maxReferences));
    const ids = await this.#deps.engine.events.idsOf(visible.map(({ nid }) => nid));
    return visible.map(({ nid }) => ids.get(nid)).filter((id) => id !== undefined);
  }

  async #summarise(
    view: ChildrenInView,
    root: StoredEvent,
    replies: readonly Child[],
    { userId, hasMore }: { readonly userId: string; readonly hasMore: boolean },
  ): Promise<ThreadSummary<VisibleEvent> | undefined> {
    if (replies.length === 0 || !canBeThreadRoot(visibleContent(root))) return undefined;
    const visible = await view.visible(replies);
    const thread = summariseThread(root.event, visible, userId);
    const [latestEvent] = thread ? await view.events([thread.latestEvent]) : [];
    if (!thread || !latestEvent) return undefined;
    // `view.visible` returns the same array to a user who may see all history: only then are unloaded replies counted.
    const mayCountAll = visible === replies;
    return {
      ...(mayCountAll && hasMore ? await this.#withTotalCount(thread, root, userId) : thread),
      latestEvent,
    };
  }

  /** Returns the summary with the count of all replies in place of the count of the replies that were loaded. */
  async #withTotalCount<T>(thread: ThreadSummary<T>, { event, roomNid }: StoredEvent, userId: string) {
    const { index, ignored } = this.#deps;
    const threadKey = { parentId: event.eventId, roomNid };
    const { total, ofUser } = await countReplies(index.reader, threadKey, userId, await ignored.of(userId));
    return {
      ...thread,
      count: total,
      currentUserParticipated: thread.currentUserParticipated || ofUser > 0,
    };
  }
}

/** Whether a thread may have replies that were not loaded, because the maximum number was loaded. */
const hasMoreReplies = (children: readonly Child[]) =>
  children.length >= maxReadReplies &&
  children.filter(({ relType }) => relType === 'm.thread').length >= maxReadReplies;

const isInSameRoom = (child: Child, parent: StoredEvent) => child.roomNid === parent.roomNid;

/** Returns the latest valid edit that the user may see, among the newest `maxEdits` edits by the sender of the event. */
async function replacementOf(
  view: ChildrenInView,
  parent: StoredEvent,
  edits: readonly Child[],
): Promise<VisibleEvent | undefined> {
  const { sender, type } = parent.event;
  const candidates = edits
    .filter((edit) => edit.sender === sender && edit.type === type)
    .sort((a, b) => b.ts - a.ts)
    .slice(0, maxEdits);
  if (candidates.length === 0 || parent.redactedBy !== undefined) return undefined;
  const visible = await view.events(candidates);
  const latest = latestReplacement(
    parent.event,
    false,
    visible.map(({ stored }) => stored.event),
  );
  return visible.find(({ stored }) => stored.event === latest);
}
