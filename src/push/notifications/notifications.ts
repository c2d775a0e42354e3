import type { StreamReader } from '../../kernel/streams/index.ts';
import { decodePosition, encodePosition } from '../../kernel/streams/index.ts';
import type { JsonObject, JsonValue } from '../../protocol/index.ts';
import { type RoomReader, type StoredEvent, sizeOfEvent } from '../../room-engine/index.ts';
import type { ClientEvents, InvitePolicy, Viewer } from '../../rooms/index.ts';
import { outcomeFor } from '../evaluation/outcome.ts';
import type { PushEvaluation } from '../evaluation/push-evaluation.ts';
import { SearchCount } from '../evaluation/search-count.ts';
import { type EventInRoom, NewestFirst } from './newest-first.ts';

export interface NotificationsDeps {
  /** `push.enabled`: when false no event notifies any user. */
  readonly enabled: boolean;
  readonly engine: RoomReader;
  readonly clientEvents: ClientEvents;
  readonly streams: StreamReader;
  readonly evaluation: PushEvaluation;
  /** The users' permissions for invites. */
  readonly invitePolicy: InvitePolicy;
}

export interface NotificationsRequest {
  /** The `next_token` of the page before; `undefined` for the first page. */
  readonly from: string | undefined;
  readonly limit: number;
  readonly onlyHighlights: boolean;
}

/** The response of `GET /notifications`. */
export interface NotificationsPage {
  readonly notifications: readonly JsonObject[];
  readonly next_token?: string;
}

/** An event that notifies the user, with the actions of the rule that matches. */
interface Notification {
  readonly stored: StoredEvent;
  readonly actions: JsonValue;
  readonly read: boolean;
}

/** Maximum number of events that one request loads to fill its page; fewer when the rules of the user take long. */
const maxLoaded = 2_000;

/** A page ends when the evaluated events have this number of bytes (estimated): about 100 ms of reading. */
const maxBytes = 16_777_216;

/**
 * The events that notified users, by their push rules at the time of the request: nothing is stored when an
 * event arrives. Source: client-server API, "Listing notifications".
 */
export class Notifications {
  readonly #deps: NotificationsDeps;

  constructor(deps: NotificationsDeps) {
    this.#deps = deps;
  }

  /** Returns a page of notifications, the latest first. @throws MatrixError M_INVALID_PARAM for an invalid token */
  async page(
    viewer: Viewer,
    { from, limit, onlyHighlights }: NotificationsRequest,
  ): Promise<NotificationsPage> {
    const { enabled, streams, engine, invitePolicy } = this.#deps;
    if (!enabled) return { notifications: [] };
    const before = from === undefined ? streams.current + 1 : decodePosition(from);
    const isShown = async ({ event }: StoredEvent) =>
      (await invitePolicy.decide(viewer.userId, event.sender)) === 'allow';
    const events = await NewestFirst.open(engine, viewer.userId, before, isShown);
    const notifying: Notification[] = [];
    const searches = new SearchCount();
    let bytes = 0;
    while (events.loadedCount < maxLoaded && bytes < maxBytes && !searches.isUsedUp) {
      const next = await events.next();
      bytes += next ? sizeOfEvent(next.stored) : 0;
      if (!next) return { notifications: await this.#render(viewer, notifying) };
      if (notifying.length === limit)
        return this.#pageWithToken(viewer, notifying, (next.stored.stream ?? 0) + 1);
      const notification = await this.#evaluate(viewer, next, onlyHighlights, searches);
      if (notification) notifying.push(notification);
      const pause = searches.pauseIfDue();
      if (pause) await pause;
    }
    return this.#pageWithToken(viewer, notifying, events.position);
  }

  async #evaluate(
    { userId }: Viewer,
    { head, stored }: EventInRoom,
    onlyHighlights: boolean,
    searches: SearchCount,
  ): Promise<Notification | undefined> {
    if (stored.event.sender === userId) return undefined;
    const { events, members } = this.#deps.evaluation;
    const member = await members.of(head, userId);
    const prepared = await events.get(head, stored);
    const { notify, highlight, actions } = outcomeFor(member, stored, prepared, searches);
    if (!notify || (onlyHighlights && !highlight)) return undefined;
    const read = (stored.stream ?? 0) <= member.read.thread(prepared.threadId);
    return { stored, actions: [...actions], read };
  }

  async #pageWithToken(
    viewer: Viewer,
    notifying: readonly Notification[],
    before: number,
  ): Promise<NotificationsPage> {
    return { notifications: await this.#render(viewer, notifying), next_token: encodePosition(before) };
  }

  async #render(viewer: Viewer, notifying: readonly Notification[]): Promise<JsonObject[]> {
    const isInvite = ({ event }: StoredEvent) =>
      event.stateKey === viewer.userId && event.content['membership'] === 'invite';
    const visible = notifying.map(({ stored }) => ({
      stored,
      membership: isInvite(stored) ? ('invite' as const) : ('join' as const),
    }));
    const events = await this.#deps.clientEvents.render(visible, viewer, 'without room id');
    return notifying.map(({ stored, actions, read }, index) => ({
      actions,
      event: events[index] ?? {},
      read,
      room_id: stored.event.roomId,
      ts: stored.event.originServerTs,
    }));
  }
}
