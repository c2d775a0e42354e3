import { historyVisibilityOf, stateMapKey } from '../protocol/index.ts';
import type { RoomHead, RoomReader } from '../room-engine/index.ts';
import { RoomView, type VisibleEvent } from '../rooms/index.ts';
import type { Child } from './child.ts';

/**
 * Maximum number of children that are checked one by one when the user may not see the whole history. The latest
 * children are checked, and older children are left out.
 */
const maxExamined = 500;

/**
 * Maximum number of children that are checked one by one for all events of a page together: each check reads the child.
 * Beyond this number, only `minExamined` children of each further event are checked.
 */
const maxExaminedTogether = 1_000;

/** Minimum number of children of an event that are checked. */
const minExamined = 5;

const visibilityKey = stateMapKey('m.room.history_visibility', '');

/**
 * Caches `isHistoryUnrestricted`; valid while the history visibility event of the room has the nid `nid`.
 */
const unrestrictedHistories = new WeakMap<
  RoomHead,
  { readonly nid: number | undefined; readonly isUnrestricted: boolean }
>();

/** Whether members may see the whole history of a room, because its history visibility never restricted them. */
async function isHistoryUnrestricted(engine: RoomReader, head: RoomHead): Promise<boolean> {
  const nid = head.state.get(visibilityKey)?.nid;
  const cached = unrestrictedHistories.get(head);
  if (cached && cached.nid === nid) return cached.isUnrestricted;
  const entries = await engine.stateHistory(head.roomNid, visibilityKey);
  const isUnrestricted = entries.every(({ event }) => {
    const visibility = historyVisibilityOf(event?.event.content);
    return visibility === 'shared' || visibility === 'world_readable';
  });
  unrestrictedHistories.set(head, { nid, isUnrestricted });
  return isUnrestricted;
}

/** Filters children by whether a user may see them. */
export class ChildrenInView {
  readonly #engine: RoomReader;
  readonly #view: RoomView;
  readonly #seesAll: boolean;
  #examined = 0;

  private constructor(engine: RoomReader, view: RoomView, seesAll: boolean) {
    this.#engine = engine;
    this.#view = view;
    this.#seesAll = seesAll;
  }

  /** Returns the filter for the user of a view. */
  static async forView(engine: RoomReader, view: RoomView): Promise<ChildrenInView> {
    return new ChildrenInView(
      engine,
      view,
      view.isJoined && (await isHistoryUnrestricted(engine, view.head)),
    );
  }

  /** Returns the filter for a user; does not check whether the user may read the room. */
  static async open(engine: RoomReader, head: RoomHead, userId: string): Promise<ChildrenInView> {
    return ChildrenInView.forView(engine, await RoomView.open(engine, head, userId));
  }

  /**
   * Returns the visible children, in the same order; the same array if none of them had to be checked. When they must
   * be checked one by one, only the latest are returned (see `maxExamined`).
   */
  async visible(children: readonly Child[]): Promise<readonly Child[]> {
    const expiredBefore = await this.#engine.retention.expiredBefore(this.#view.head);
    // Backfilled events may be older than the oldest known state of the room.
    if (this.#seesAll && children.every(({ stream, ts }) => stream > 0 && ts >= expiredBefore))
      return children;
    const left = Math.min(maxExamined, maxExaminedTogether - this.#examined);
    const examined = children.slice(-Math.max(minExamined, left));
    this.#examined += examined.length;
    const seen = new Set((await this.events(examined)).map(({ stored }) => stored.nid));
    return examined.filter(({ nid }) => seen.has(nid));
  }

  /** Returns the events of the visible children, in the same order. */
  async events(children: readonly Child[]): Promise<VisibleEvent[]> {
    const eventsByNid = await this.#engine.events.getMany(children.map(({ nid }) => nid));
    const stored = children.map(({ nid }) => eventsByNid.get(nid)).filter((event) => event !== undefined);
    return this.#view.visible(stored);
  }
}
