import { historyVisibilityOf, stateMapKey } from '../protocol/index.ts';
import type { RoomHead, RoomReader } from '../room-engine/index.ts';
import { RoomView, type VisibleEvent } from '../rooms/index.ts';
import type { Child } from './child.ts';

/**
 * Maximum number of children, the latest ones, that are checked one by one when the user may not see the
 * whole history.
 */
const maxExamined = 500;

const visibilityKey = stateMapKey('m.room.history_visibility', '');

/** Whether members may see the whole history of a room, for as long as its history visibility event has this nid. */
const openRooms = new WeakMap<RoomHead, { readonly nid: number | undefined; readonly isOpen: boolean }>();

/** Whether the history visibility of the room never restricted its members. */
async function isOpen(engine: RoomReader, head: RoomHead): Promise<boolean> {
  const nid = head.state.get(visibilityKey)?.nid;
  const known = openRooms.get(head);
  if (known && known.nid === nid) return known.isOpen;
  const entries = await engine.stateHistory(head.roomNid, visibilityKey);
  const open = entries.every(({ event }) => {
    const visibility = historyVisibilityOf(event?.event.content);
    return visibility === 'shared' || visibility === 'world_readable';
  });
  openRooms.set(head, { nid, isOpen: open });
  return open;
}

/** Filters children by whether a user may see them. */
export class ChildrenInView {
  readonly #engine: RoomReader;
  readonly #view: RoomView;
  readonly #seesAll: boolean;

  private constructor(engine: RoomReader, view: RoomView, seesAll: boolean) {
    this.#engine = engine;
    this.#view = view;
    this.#seesAll = seesAll;
  }

  static async of(engine: RoomReader, view: RoomView): Promise<ChildrenInView> {
    return new ChildrenInView(engine, view, view.isJoined && (await isOpen(engine, view.head)));
  }

  static async open(engine: RoomReader, head: RoomHead, userId: string): Promise<ChildrenInView> {
    return ChildrenInView.of(engine, await RoomView.open(engine, head, userId));
  }

  /** Returns the visible children, in the same order. */
  async visible(children: readonly Child[]): Promise<readonly Child[]> {
    const expiredBefore = await this.#engine.retention.expiredBefore(this.#view.head);
    // Backfilled events may be older than the oldest known state of the room.
    if (this.#seesAll && children.every(({ stream, ts }) => stream > 0 && ts >= expiredBefore))
      return children;
    const examined = children.slice(-maxExamined);
    const seen = new Set((await this.events(examined)).map(({ stored }) => stored.nid));
    return examined.filter(({ nid }) => seen.has(nid));
  }

  /** Returns the events of the visible children, in the same order. */
  async events(children: readonly Child[]): Promise<VisibleEvent[]> {
    const found = await this.#engine.events.getMany(children.map(({ nid }) => nid));
    const stored = children.map(({ nid }) => found.get(nid)).filter((one) => one !== undefined);
    return this.#view.visible(stored);
  }
}
