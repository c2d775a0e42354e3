import { allReady } from '../../kernel/when-ready.ts';
import {
  forbidden,
  type HistoryVisibility,
  historyVisibilityOf,
  isVisibleToUser,
  type JsonObject,
  type Membership,
  membershipOf,
  notFound,
  stateMapKey,
} from '../../protocol/index.ts';
import type { RoomHead, RoomReader, StateHistoryEntry, StoredEvent } from '../../room-engine/index.ts';
import {
  erasedEvents,
  isHidden,
  isHiddenFromUser,
  joinedBeforeErasure,
  unexpired,
} from '../../room-engine/index.ts';

/** An event that a user may see. */
export interface VisibleEvent {
  readonly stored: StoredEvent;
  /**
   * The user's membership when the event was sent (`unsigned.membership`). `undefined` for administrators who see all
   * events, and in results of `asState`: finding it would cost a look-up for each event, and clients use it only to
   * explain messages that they cannot decrypt.
   */
  readonly membership: Membership | undefined;
  /**
   * The sender has been erased, and the user was not joined between the event and the erasure: rendered as if redacted.
   */
  readonly isErased?: boolean;
}

/** The user who reads a room. */
interface ReadingViewer {
  readonly userId: string;
  /** Whether the viewer is an administrator who reads all events, also in rooms that they are not in. */
  readonly seesAllEvents?: boolean;
}

const visibilityKey = stateMapKey('m.room.history_visibility', '');

/**
 * The view of a user on a room: decides which events the user may see. Source: client-server API, "Room History
 * Visibility".
 */
export class RoomView {
  readonly head: RoomHead;
  readonly userId: string;
  readonly #engine: RoomReader;
  /** Changes of the user's membership, oldest first; not loaded while the user is joined. */
  readonly #memberships: readonly StateHistoryEntry[];
  /**
   * Stream position of the user's last join; 0 if there was none, `Infinity` while the user is joined or sees all
   * events.
   */
  readonly #lastJoin: number;
  /** Whether history visibility, ignored users and erasures do not matter. Expired messages are hidden nevertheless. */
  readonly #seesAll: boolean;

  private constructor(
    engine: RoomReader,
    head: RoomHead,
    userId: string,
    changes: readonly StateHistoryEntry[] | undefined,
    seesAll = false,
  ) {
    this.#engine = engine;
    this.head = head;
    this.userId = userId;
    this.#memberships = changes ?? [];
    this.#seesAll = seesAll;
    this.#lastJoin = changes ? (changes.findLast(isJoin)?.stream ?? 0) : Number.POSITIVE_INFINITY;
  }

  /** Opens the view without checking access: it may show no events at all. */
  static async open(engine: RoomReader, head: RoomHead, userId: string): Promise<RoomView> {
    if (head.membership(userId) === 'join') return new RoomView(engine, head, userId, undefined);
    const changes = await engine.stateHistory(head.roomNid, stateMapKey('m.room.member', userId));
    return new RoomView(engine, head, userId, changes);
  }

  /**
   * Opens the view for a user who requests to read the room.
   * @throws MatrixError M_FORBIDDEN for an unknown room, and for users who never joined or have forgotten the room,
   * unless it is world-readable
   */
  static async forReading(engine: RoomReader, head: RoomHead | undefined, userId: string): Promise<RoomView> {
    if (head) {
      const view = await RoomView.open(engine, head, userId);
      if (view.isJoined || (await view.isWorldReadable())) return view;
      if (view.hasBeenJoined && !(await view.#isForgotten())) return view;
    }
    throw forbidden('You are not in this room');
  }

  /**
   * Opens the view of a viewer who requests one event by its id. The history visibility decides about each event, so a
   * user who may not read the history of a room may still see some of its events: those since an invite, or from a time
   * when the room was world-readable.
   * @throws MatrixError M_FORBIDDEN for an unknown room, and for users who have forgotten the room, unless it is
   * world-readable; M_NOT_FOUND as `forViewer`
   */
  static async forEvent(engine: RoomReader, roomId: string, viewer: ReadingViewer): Promise<RoomView> {
    const head = viewer.seesAllEvents ? undefined : await engine.heads.get(roomId);
    const view = head && (await RoomView.open(engine, head, viewer.userId));
    return view && !(await view.#isForgotten()) ? view : RoomView.forViewer(engine, roomId, viewer);
  }

  /**
   * Opens the view of a viewer.
   * @throws MatrixError M_NOT_FOUND when an administrator who sees all events reads an unknown room; otherwise as
   * `forReading`
   */
  static async forViewer(engine: RoomReader, roomId: string, viewer: ReadingViewer): Promise<RoomView> {
    const head = await engine.heads.get(roomId);
    if (!viewer.seesAllEvents) return RoomView.forReading(engine, head, viewer.userId);
    if (!head) throw notFound('Room not found');
    return new RoomView(engine, head, viewer.userId, undefined, true);
  }

  /** Whether the user is joined or has been; true for administrators who see all events. */
  get hasBeenJoined(): boolean {
    return this.#lastJoin > 0;
  }

  /** Whether the user is joined; true for administrators who see all events. */
  get isJoined(): boolean {
    return this.#lastJoin === Number.POSITIVE_INFINITY;
  }

  /**
   * The membership event that ended the user's last join; `undefined` while the user is joined, or if the user never
   * was.
   */
  get lastLeave(): StateHistoryEntry | undefined {
    return this.hasBeenJoined ? this.#memberships[this.#memberships.findLastIndex(isJoin) + 1] : undefined;
  }

  /** The user's membership at a stream position. Only for users who are not joined. */
  membershipAt(position: number): Membership {
    const change = this.#memberships.findLast(({ stream }) => stream <= position);
    return change?.event ? membershipOf(change.event.event.content) : 'leave';
  }

  /**
   * Returns the events that the user may see and that are not hidden from the user (as events of ignored senders are),
   * in the same order.
   * @param isShown selects events that the user may see although the history visibility hides them
   */
  async displayable(
    events: readonly StoredEvent[],
    isShown?: (stored: StoredEvent) => boolean,
  ): Promise<VisibleEvent[]> {
    if (this.#seesAll) return this.visible(events);
    const ignored = await this.#engine.ignored.of(this.userId);
    return this.visible(
      events.filter(({ event }) => !isHiddenFromUser(event, ignored)),
      isShown,
    );
  }

  /**
   * Returns the events that the user may see and that have not expired, including events of ignored senders, in the
   * same order.
   * @param isShown as in `displayable`
   */
  async visible(
    candidates: readonly StoredEvent[],
    isShown: (stored: StoredEvent) => boolean = () => false,
  ): Promise<VisibleEvent[]> {
    const events = unexpired(candidates, await this.#engine.retention.expiredBefore(this.head));
    if (this.#seesAll) {
      return events
        .filter((stored) => !isHidden(stored))
        .map((stored) => ({ stored, membership: undefined }));
    }
    const accesses = await this.#accessBefore(events);
    const visible: VisibleEvent[] = [];
    const { userId } = this;
    for (let index = 0; index < events.length; index++) {
      const stored = events[index]!;
      const before = accesses[index]!;
      if (isHidden(stored)) continue;
      if (before.membership !== 'join' && !isShown(stored)) {
        const joinedLater = this.#lastJoin > (stored.stream ?? 0);
        if (!isVisibleToUser(stored.event, { userId, ...before, joinedLater })) continue;
      }
      visible.push({ stored, membership: membershipWith(stored, userId) ?? before.membership });
    }
    const absent = visible.filter(({ membership }) => membership !== 'join').map(({ stored }) => stored);
    const erased = await this.#erasedOf(absent);
    if (erased.size === 0) return visible;
    return visible.map((visibleEvent) =>
      erased.has(visibleEvent.stored) ? { ...visibleEvent, isErased: true } : visibleEvent,
    );
  }

  /** Returns the events of a state for rendering. The caller must have checked that the user may read the state. */
  async asState(events: readonly StoredEvent[]): Promise<VisibleEvent[]> {
    const erased = this.#seesAll ? new Set() : await this.#erasedOf(events);
    return events.map((stored) => ({
      stored,
      membership: undefined,
      ...(erased.has(stored) && { isErased: true }),
    }));
  }

  /**
   * Returns the events of erased senders that the user did not see before the erasure: the user was not joined when the
   * event was sent, and did not join between the event and the erasure.
   */
  async #erasedOf(events: readonly StoredEvent[]): Promise<Set<StoredEvent>> {
    const positions = erasedEvents(events, await this.#engine.erased.positions());
    if (positions.size === 0) return new Set();
    const erased = [...positions.keys()];
    const key = stateMapKey('m.room.member', this.userId);
    const changes = await this.#engine.stateHistory(this.head.roomNid, key);
    const joins = changes.filter(isJoin).map(({ stream }) => stream);
    const accesses = await this.#accessBefore(erased);
    return new Set(
      erased.filter(
        (stored, index) =>
          accesses[index]?.membership !== 'join' &&
          !joinedBeforeErasure(stored, positions.get(stored) ?? 0, joins),
      ),
    );
  }

  /** Returns the history visibility and the user's membership before each event. */
  async #accessBefore(events: readonly StoredEvent[]): Promise<Access[]> {
    const { groups, stateKeys, events: store } = this.#engine;
    const memberKey = stateMapKey('m.room.member', this.userId);
    const keys = allReady<[number | undefined, number | undefined]>([
      stateKeys.peek(visibilityKey) ?? stateKeys.find(visibilityKey),
      stateKeys.peek(memberKey) ?? stateKeys.find(memberKey),
    ]);
    const [visibilityNid = 0, memberNid = 0] = keys instanceof Promise ? await keys : keys;
    // Most events of a timeline have the same state before them.
    const before = new Set<number>();
    for (const { stateBefore } of events) if (stateBefore !== undefined) before.add(stateBefore);
    const states = await groups.entries(before, [visibilityNid, memberNid]);
    const nids = new Set<number>();
    for (const state of states.values()) for (const nid of state.values()) nids.add(nid);
    const contents = new Map<number, JsonObject>();
    for (const { nid, event } of await store.list([...nids])) contents.set(nid, event.content);
    const accessOf = new Map<number | undefined, Access>();
    for (const [group, state] of states) {
      const contentOf = (key: number) => contents.get(state.get(key) ?? 0);
      accessOf.set(group, accessWith(contentOf(visibilityNid), contentOf(memberNid)));
    }
    return events.map(({ stateBefore }) => accessOf.get(stateBefore) ?? unknownAccess);
  }

  /** Whether the current history visibility is `world_readable`. */
  async isWorldReadable(): Promise<boolean> {
    const entry = this.head.state.get(visibilityKey);
    const event = entry && (await this.#engine.events.get(entry.nid));
    return historyVisibilityOf(event?.event.content) === 'world_readable';
  }

  async #isForgotten(): Promise<boolean> {
    const rooms = await this.#engine.userRooms.of(this.userId);
    return rooms.get(this.head.roomId)?.forgotten === true;
  }
}

/** The history visibility and the user's membership before an event, which decide whether the user may see it. */
interface Access {
  readonly visibility: HistoryVisibility;
  readonly membership: Membership;
}

const accessWith = (visibility: JsonObject | undefined, member: JsonObject | undefined): Access => ({
  visibility: historyVisibilityOf(visibility),
  membership: membershipOf(member),
});

/** The access before an event whose state before it is unknown. */
const unknownAccess = accessWith(undefined, undefined);

const isJoin = ({ event }: StateHistoryEntry) =>
  event !== undefined && membershipOf(event.event.content) === 'join';

/** Returns the membership of the user that the event itself sets. */
function membershipWith({ event }: StoredEvent, userId: string): Membership | undefined {
  const isOwn = event.type === 'm.room.member' && event.stateKey === userId;
  return isOwn ? membershipOf(event.content) : undefined;
}
