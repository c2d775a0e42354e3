import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { AppendOptions, SlowSends } from '../timeline/append.ts';
import type { VerifiedEvent } from '../verified-event.ts';
import { buildAtEnd } from './building/build-at-end.ts';
import { buildOverManyExtremities } from './building/build-over-extremities.ts';
import { buildEventTemplate } from './building/event-template.ts';
import { CompleteState } from './entering/complete-state.ts';
import { EnterRoom } from './entering/enter-room.ts';
import { OutOfBandMemberships } from './entering/out-of-band.ts';
import { Backfill } from './events/backfill.ts';
import { missingExpiredMessages } from './events/missing-expired-messages.ts';
import { Outliers } from './events/outliers.ts';
import { EventPlacer, type PlacedEvent } from './events/place-event.ts';
import type { Placement, PlaceOptions } from './placement.ts';
import type { PlacementDeps } from './placement-deps.ts';
import { BeforeStates } from './states/before-state.ts';

/**
 * Places events one at a time in each room, so that each event finds the events before it: the events of remote servers,
 * and those of local users that cannot be appended synchronously.
 */
export class RoomPlacement implements Placement {
  readonly #deps: PlacementDeps;
  readonly #before: BeforeStates;
  /** Runs one task at a time in each room, by room id. */
  readonly #mutex = new KeyedMutex();
  readonly #outliers: Outliers;
  readonly #placing: EventPlacer;
  readonly #entering: EnterRoom;
  readonly #outOfBand: OutOfBandMemberships;
  readonly #backfill: Backfill;
  readonly #completing: CompleteState;

  constructor(deps: PlacementDeps) {
    const before = new BeforeStates(deps);
    this.#deps = deps;
    this.#before = before;
    this.#outliers = new Outliers(deps);
    this.#placing = new EventPlacer(deps, before);
    this.#entering = new EnterRoom(deps, {
      beforeStates: before,
      outliers: this.#outliers,
      placing: this.#placing,
    });
    this.#outOfBand = new OutOfBandMemberships(deps);
    this.#backfill = new Backfill(deps, before);
    this.#completing = new CompleteState(deps, before);
  }

  find: Placement['find'] = (eventIds) => this.#deps.events.getManyById(eventIds);

  missingExpiredMessages: Placement['missingExpiredMessages'] = (head, events) =>
    missingExpiredMessages(
      { database: this.#deps.database, retention: this.#deps.checks.retention },
      head,
      events,
    );

  addOutliers: Placement['addOutliers'] = (room, events) =>
    this.#run(room.roomId, () => this.#outliers.add(room, events));

  place: Placement['place'] = async (roomId, event, options = {}) => {
    const signed = await this.#withPolicySignature(roomId, event, options);
    return this.#placeInQueue(roomId, () => this.#placing.place(roomId, signed, options));
  };

  /** Sends the events of local users that `EventAppender` cannot add synchronously. */
  readonly slowSends: SlowSends = {
    sendOverManyExtremities: (roomId, draft, options) =>
      this.#send(roomId, options, () =>
        this.#run(roomId, () => buildOverManyExtremities(this.#deps, this.#before, roomId, draft)),
      ),
    sendWithPolicySignature: (roomId, draft, options) =>
      this.#send(roomId, options, () => buildAtEnd(this.#deps, roomId, draft)),
  };

  enter: Placement['enter'] = async (room, entry) => {
    const event = await this.#withPolicySignature(room.roomId, entry.event, { refuse: true });
    return this.#placeInQueue(room.roomId, () => this.#entering.enter(room, { ...entry, event }));
  };

  addOutOfBand: Placement['addOutOfBand'] = (room, event, details) =>
    this.#placeInQueue(room.roomId, () => this.#outOfBand.add(room, event, details));

  backfill: Placement['backfill'] = (roomId, events) =>
    this.#run(roomId, () => this.#backfill.add(roomId, events));

  eventTemplate: Placement['eventTemplate'] = (roomId, draft) =>
    buildEventTemplate(this.#deps, roomId, draft);

  completeState: Placement['completeState'] = (roomId, state, options) =>
    this.#run(roomId, () => this.#completing.complete(roomId, state, options));

  async #send(
    roomId: string,
    options: AppendOptions,
    build: () => Promise<VerifiedEvent>,
  ): Promise<StoredEvent> {
    const placeOptions = { ...options, refuse: true };
    const signed = await this.#withPolicySignature(roomId, await build(), placeOptions);
    return this.#placeInQueue(roomId, () => this.#placing.place(roomId, signed, placeOptions));
  }

  /**
   * Returns the event with the signature of the room's policy server, where one is required and missing. Runs
   * outside of the room's queue, because that server may be slow.
   * @throws MatrixError when the policy server does not sign and the options have `refuse`
   */
  async #withPolicySignature(
    roomId: string,
    event: VerifiedEvent,
    { refuse }: PlaceOptions,
  ): Promise<VerifiedEvent> {
    const { heads, signer } = this.#deps;
    const { policies } = this.#deps.checks;
    const head = await heads.get(roomId);
    if (!head?.servers.has(signer.serverName)) return event;
    return refuse ? policies.sign(head, event) : policies.trySign(head, event);
  }

  /**
   * Places an event in the room's queue, and resolves once the event is on disk. The queue moves on as soon as the event
   * is placed in memory, unless the next event must read rows that this event writes.
   */
  async #placeInQueue(roomId: string, place: () => Promise<PlacedEvent>): Promise<StoredEvent> {
    const { stored, durable } = await this.#run(roomId, async () => {
      const placed = await place();
      if (placed.nextEventWaitsForDisk) await placed.durable;
      return placed;
    });
    await durable;
    return stored;
  }

  /**
   * Runs a task in the room's queue. State keys that get a nid during the task but are not written are forgotten
   * afterwards.
   */
  #run<T>(roomId: string, task: () => Promise<T>): Promise<T> {
    const { stateKeys } = this.#deps.states;
    return this.#mutex.run(roomId, () => stateKeys.attempt(task));
  }
}
