import { historyVisibilityOf, stateMapKey } from '../protocol/index.ts';
import type { RoomHead, RoomReader } from '../room-engine/index.ts';
import { RoomView, type VisibleEvent } from '../rooms/index.ts';
import type { Child } from './child.ts';

/** Children that are looked at one by one where not everything may be seen: the latest. */
const maxExamined = 500;

const visibilityKey = stateMapKey('m.room.history_visibility', '');

/** By head: whether members have always been able to see everything, up to an entry of the state. */
const openRooms = new WeakMap<RoomHead, { readonly nid: number | undefined; readonly isOpen: boolean }>();

/** Whether the room never kept anything from its members. */
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

/** Which of the events that relate to others a user may see. */
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

  /** Those of the children that the user may see, in the same order. */
  async visible(children: readonly Child[]): Promise<readonly Child[]> {
    // What other servers have told of the past later may come from a time before what is known of the room's state.
    if (this.#seesAll && children.every(({ stream }) => stream > 0)) return children;
    const examined = children.slice(-maxExamined);
    const seen = new Set((await this.events(examined)).map(({ stored }) => stored.nid));
    return examined.filter(({ nid }) => seen.has(nid));
  }

  /** The events of those of the children that the user may see, in the same order. */
  async events(children: readonly Child[]): Promise<VisibleEvent[]> {
    const found = await this.#engine.events.getMany(children.map(({ nid }) => nid));
    const stored = children.map(({ nid }) => found.get(nid)).filter((one) => one !== undefined);
    return this.#view.visible(stored);
  }
}
