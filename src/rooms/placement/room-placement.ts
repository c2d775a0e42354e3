import type { EventStore } from '../timeline/event-store.ts';
import type { Placement } from './placement.ts';

/** Puts the events of other servers at their places. */
export class RoomPlacement implements Placement {
  readonly #events: EventStore;

  constructor(parts: { events: EventStore }) {
    this.#events = parts.events;
  }

  known: Placement['known'] = (eventIds) => this.#events.getManyById(eventIds);
  addOutliers: Placement['addOutliers'] = () => unbuilt();
  append: Placement['append'] = () => unbuilt();
  enter: Placement['enter'] = () => unbuilt();
  outOfBand: Placement['outOfBand'] = () => unbuilt();
  backfill: Placement['backfill'] = () => unbuilt();
  backwardExtremities: Placement['backwardExtremities'] = () => unbuilt();
  stateAt: Placement['stateAt'] = () => unbuilt();
  authChain: Placement['authChain'] = () => unbuilt();
  template: Placement['template'] = () => unbuilt();
  partialRooms: Placement['partialRooms'] = () => unbuilt();
  completeState: Placement['completeState'] = () => unbuilt();
}

async function unbuilt(): Promise<never> {
  throw new Error('this part of placement is being built');
}
