import type { CacheRegistry } from '../../kernel/caches/index.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import { decodePosition, encodePosition } from '../../kernel/streams/index.ts';
import {
  type CompiledRuleset,
  evaluateRules,
  type JsonObject,
  type JsonValue,
  type PushMember,
} from '../../protocol/index.ts';
import type { Receipts } from '../../receipts/index.ts';
import {
  type IgnoredUserLists,
  isHidden,
  type RoomHead,
  type RoomReader,
  type StoredEvent,
} from '../../room-engine/index.ts';
import type { ClientEvents, InvitePolicy, Viewer } from '../../rooms/index.ts';
import type { PushRules } from '../rules/push-rules.ts';
import { PushEvents } from '../unread/push-events.ts';
import type { FollowedThreads } from '../unread/unread.ts';
import { NewestFirst } from './newest-first.ts';

export interface NotificationsDeps {
  readonly caches: CacheRegistry;
  readonly engine: RoomReader;
  readonly clientEvents: ClientEvents;
  readonly streams: StreamReader;
  readonly receipts: Receipts;
  readonly rules: PushRules;
  readonly ignored: IgnoredUserLists;
  readonly threads: FollowedThreads;
  /** The users' permissions for invites. */
  readonly invitePolicy: InvitePolicy;
}

export interface NotificationsRequest {
  readonly from: string | undefined;
  readonly limit: number;
  readonly onlyHighlights: boolean;
}

/** The response of `GET /notifications`. */
export interface NotificationsPage {
  readonly notifications: readonly JsonObject[];
  readonly next_token?: string;
}

/** The user for whom events are evaluated, with what their rules need. */
interface NotifiedUser {
  readonly viewer: Viewer;
  readonly rules: CompiledRuleset;
  readonly ignored: ReadonlySet<string>;
  /** The user as the member of each room, by room id. */
  readonly members: Map<string, PushMember>;
}

interface Notification {
  readonly stored: StoredEvent;
  readonly actions: JsonValue;
  readonly read: boolean;
}

/** Bounds the events that one request evaluates to fill its page. */
const maxScanned = 2_000;

/**
 * The events that notified users, by their push rules at the time of the request: nothing is stored when an
 * event arrives. Source: client-server API, "Listing notifications".
 */
export class Notifications {
  readonly #deps: NotificationsDeps;
  readonly #pushEvents: PushEvents;

  constructor(deps: NotificationsDeps) {
    this.#deps = deps;
    this.#pushEvents = new PushEvents(deps.engine, deps.caches, 'notified_push_events');
  }

  /** Returns a page, the latest first. @throws MatrixError M_INVALID_PARAM for an invalid token */
  async page(
    viewer: Viewer,
    { from, limit, onlyHighlights }: NotificationsRequest,
  ): Promise<NotificationsPage> {
    const { streams, rules, ignored, engine, invitePolicy } = this.#deps;
    const subject = {
      viewer,
      rules: await rules.compiled(viewer.userId),
      ignored: await ignored.of(viewer.userId),
      members: new Map(),
    };
    const before = from === undefined ? streams.current + 1 : decodePosition(from);
    const isShown = async ({ event }: StoredEvent) =>
      (await invitePolicy.decide(viewer.userId, event.sender)) === 'allow';
    const events = await NewestFirst.open(engine, viewer.userId, before, isShown);
    const found: Notification[] = [];
    for (let scanned = 0; scanned < maxScanned; scanned++) {
      const next = await events.next();
      if (!next) return { notifications: await this.#render(viewer, found) };
      if (found.length === limit) return this.#withNext(viewer, found, (next.stored.stream ?? 0) + 1);
      const notification = await this.#evaluate(subject, next.head, next.stored, onlyHighlights);
      if (notification) found.push(notification);
    }
    return this.#withNext(viewer, found, events.position);
  }

  async #evaluate(
    subject: NotifiedUser,
    head: RoomHead,
    stored: StoredEvent,
    onlyHighlights: boolean,
  ): Promise<Notification | undefined> {
    const { sender } = stored.event;
    const { userId } = subject.viewer;
    if (sender === userId || subject.ignored.has(sender)) return undefined;
    if (stored.redactedBy !== undefined || isHidden(stored)) return undefined;
    const member = subject.members.get(head.roomId) ?? (await this.#member(head, userId));
    subject.members.set(head.roomId, member);
    const { event, threadId } = await this.#pushEvents.get(head, stored);
    const { notify, highlight, actions } = evaluateRules(subject.rules, event, member);
    if (!notify || (onlyHighlights && !highlight)) return undefined;
    const read = await this.#deps.receipts.readUpTo(userId, head.roomId);
    return { stored, actions: [...actions], read: (stored.stream ?? 0) <= read.thread(threadId) };
  }

  async #member(head: RoomHead, userId: string): Promise<PushMember> {
    const entry = head.entry('m.room.member', userId);
    const name = entry && (await this.#deps.engine.events.get(entry.nid))?.event.content['displayname'];
    const followedThreads = await this.#deps.threads.in(userId, head.roomId);
    return { userId, displayName: typeof name === 'string' ? name : undefined, followedThreads };
  }

  async #withNext(
    viewer: Viewer,
    found: readonly Notification[],
    before: number,
  ): Promise<NotificationsPage> {
    return { notifications: await this.#render(viewer, found), next_token: encodePosition(before) };
  }

  async #render(viewer: Viewer, found: readonly Notification[]): Promise<JsonObject[]> {
    const isInvite = ({ event }: StoredEvent) =>
      event.stateKey === viewer.userId && event.content['membership'] === 'invite';
    const visible = found.map(({ stored }) => ({
      stored,
      membership: isInvite(stored) ? ('invite' as const) : ('join' as const),
    }));
    const events = await this.#deps.clientEvents.render(visible, viewer, 'without room id');
    return found.map(({ stored, actions, read }, index) => ({
      actions,
      event: events[index] ?? {},
      read,
      room_id: stored.event.roomId,
      ts: stored.event.originServerTs,
    }));
  }
}
