import type { Clock } from '../../kernel/clock.ts';
import { TimeSlices } from '../../kernel/time-slices.ts';
import { allReady, whenReady } from '../../kernel/when-ready.ts';
import {
  type ClientEvent,
  clientEvent,
  clientEventWithoutRoomId,
  type JsonObject,
  type RoomEvent,
  redactEvent,
} from '../../protocol/index.ts';
import type { RoomReader, StoredEvent } from '../../room-engine/index.ts';
import {
  delayedEventsDevice,
  erasedEvents,
  transactionScope,
  withoutExpired,
} from '../../room-engine/index.ts';
import { type EventRelations, noRelations, type Viewer } from '../event-relations.ts';
import { EventTexts, type SenderFields } from './event-texts.ts';
import type { VisibleEvent } from './room-view.ts';

/** Format of rendered events: with `room_id`, without it (as in /sync), or as PDUs. */
export type ClientFormat = 'with room id' | 'without room id' | 'federation';

const formatters: Readonly<Record<ClientFormat, (event: RoomEvent, unsigned: JsonObject) => JsonObject>> = {
  'with room id': clientEvent,
  'without room id': clientEventWithoutRoomId,
  federation: ({ pdu }, unsigned) => ({ ...pdu, unsigned }),
};

/** Opens the relations of events; they need `ClientEvents`, because bundled aggregations contain rendered events. */
export type OpenRelations = (engine: RoomReader, clientEvents: ClientEvents) => EventRelations;

/** Returns what modules add to the `unsigned` of events, in the order of the events. */
export type EventAdditions = (events: readonly RoomEvent[]) => Promise<readonly (JsonObject | undefined)[]>;

/** The transaction scopes of a viewer: of the events that the device sent, and of the delayed events of the user. */
interface TransactionScopes {
  readonly scope: number;
  readonly delayScope: number;
}

/** Renders events for clients. Source: client-server API, "Room event format" and "Size limits". */
export class ClientEvents {
  readonly relations: EventRelations;
  /** Renders events as JSON text. */
  readonly texts: EventTexts;
  readonly #engine: RoomReader;
  readonly #clock: Clock;
  readonly #additions: EventAdditions | undefined;
  readonly #slices: TimeSlices;
  readonly #scopes = new WeakMap<Viewer, TransactionScopes>();

  /** @param openRelations by default events have no relations @param additions by default nothing is added */
  constructor(
    engine: RoomReader,
    clock: Clock,
    openRelations: OpenRelations = () => noRelations,
    additions?: EventAdditions,
  ) {
    this.#additions = additions;
    this.#engine = engine;
    this.#clock = clock;
    this.#slices = new TimeSlices(clock);
    this.relations = openRelations(engine, this);
    this.texts = new EventTexts(this, clock);
  }

  /** Renders the events for the viewer, in the same order; by default with `room_id`. */
  async render(events: readonly VisibleEvent[], viewer: Viewer): Promise<ClientEvent[]>;
  async render(events: readonly VisibleEvent[], viewer: Viewer, format: ClientFormat): Promise<JsonObject[]>;
  async render(
    events: readonly VisibleEvent[],
    viewer: Viewer,
    format: ClientFormat = 'with room id',
  ): Promise<JsonObject[]> {
    const hasOwnEvents = events.some(({ stored }) => stored.event.sender === viewer.userId);
    const additions = this.#additions && (await this.#additions(events.map(eventAsShown)));
    const [previous, redactions, bundles, sent] = await Promise.all([
      this.#previousState(events.filter(({ isErased }) => !isErased)),
      this.#redactions(events),
      this.relations.bundled(events, viewer),
      hasOwnEvents ? this.senderFields(viewer) : undefined,
    ]);
    const formatEvent = formatters[format];
    const rendered: JsonObject[] = [];
    await this.#slices.each(events, (shown) => {
      const index = rendered.length;
      const { stored, membership } = shown;
      const { redactedBy, replaces } = stored;
      const redaction = redactedBy === undefined ? undefined : redactions.get(redactedBy);
      const unsigned: JsonObject = {
        ...additions?.[index],
        age: Math.max(0, this.#clock.now() - stored.event.originServerTs),
        ...(membership === undefined ? undefined : { membership }),
        ...previousContent(replaces === undefined ? undefined : previous.get(replaces)),
        ...redactionFields(redaction),
        ...sent?.(stored),
        ...relationsField(bundles.get(stored.nid)),
      };
      rendered.push(formatEvent(eventAsShown(shown), unsigned));
    });
    return rendered;
  }

  /**
   * Renders an event without `room_id` for users other than its sender, without awaiting anything. Returns `undefined`
   * for events whose `unsigned` may have more fields than `age`. Bundled aggregations are left out.
   */
  renderPlain({ event, replaces, redactedBy }: StoredEvent): JsonObject | undefined {
    if (this.#additions || replaces !== undefined || redactedBy !== undefined) return undefined;
    return clientEventWithoutRoomId(event, { age: Math.max(0, this.#clock.now() - event.originServerTs) });
  }

  /**
   * Returns a function that returns the fields of `unsigned` that only the sender receives: the transaction id for the
   * sending device, the delay id for all devices of the user (`undefined` for events of other users). Returns
   * synchronously when the transaction ids are in memory. Source: client-server API, "Transaction identifiers", and
   * MSC4140, "`delay_id` in `unsigned` event data".
   */
  senderFields(viewer: Viewer): SenderFields | Promise<SenderFields> {
    const { transactions } = this.#engine;
    const { scope, delayScope } = this.#scopesOf(viewer);
    const senderFields: SenderFields = ({ nid, event }) => {
      if (event.sender !== viewer.userId) return undefined;
      const transactionId = transactions.peek(scope, nid);
      const delayId = transactions.peek(delayScope, nid);
      if (transactionId === undefined && delayId === undefined) return undefined;
      return {
        ...(transactionId !== undefined && { transaction_id: transactionId }),
        ...(delayId !== undefined && { delay_id: delayId, 'org.matrix.msc4140.delay_id': delayId }),
      };
    };
    const loading = allReady([transactions.prepare(scope), transactions.prepare(delayScope)]);
    return whenReady(loading, () => senderFields);
  }

  /** Returns whether some events of a user may have delay ids in `unsigned`; see `senderFields`. */
  async hasDelayedEvents(viewer: Viewer): Promise<boolean> {
    const { transactions } = this.#engine;
    const { delayScope } = this.#scopesOf(viewer);
    await transactions.prepare(delayScope);
    return transactions.hasAny(delayScope);
  }

  /**
   * Returns the scopes of the transactions of a viewer; cached, because a request often reads many rooms for the
   * same viewer.
   */
  #scopesOf(viewer: Viewer): TransactionScopes {
    let scopes = this.#scopes.get(viewer);
    if (!scopes) {
      const { userId, deviceId } = viewer;
      scopes = {
        scope: transactionScope(userId, deviceId),
        delayScope: transactionScope(userId, delayedEventsDevice),
      };
      this.#scopes.set(viewer, scopes);
    }
    return scopes;
  }

  /** Returns the replaced state events by nid. */
  async #previousState(events: readonly VisibleEvent[]): Promise<Map<number, StoredEvent>> {
    const nids = events.map(({ stored }) => stored.replaces).filter((nid) => nid !== undefined);
    const previous = await this.#engine.events.getMany(nids);
    const positions = await this.#engine.erased.positions();
    // The earlier profile of an erased user is not disclosed.
    for (const stored of erasedEvents([...previous.values()], positions).keys()) previous.delete(stored.nid);
    return previous;
  }

  /** Returns the redactions by nid, without expired redactions. */
  async #redactions(events: readonly VisibleEvent[]): Promise<Map<number, StoredEvent>> {
    const nids = events.map(({ stored }) => stored.redactedBy).filter((nid) => nid !== undefined);
    const redactions = [...(await this.#engine.events.getMany(nids)).values()];
    return new Map((await withoutExpired(this.#engine, redactions)).map((stored) => [stored.nid, stored]));
  }
}

const eventAsShown = ({ stored, isErased = false }: VisibleEvent): RoomEvent =>
  isErased || stored.redactedBy !== undefined ? redactEvent(stored.event).event : stored.event;

const relationsField = (bundle: JsonObject | undefined): JsonObject | undefined =>
  bundle && { 'm.relations': bundle };

/** `redacted_by` is not in the specification, but bots read it. */
const redactionFields = (redaction: StoredEvent | undefined): JsonObject | undefined =>
  redaction && {
    redacted_by: redaction.event.eventId,
    redacted_because: clientEvent(redaction.event),
  };

function previousContent(previous: StoredEvent | undefined): JsonObject | undefined {
  if (!previous) return undefined;
  const { event } = previous.redactedBy === undefined ? previous : redactEvent(previous.event);
  return { prev_content: event.content, prev_sender: event.sender, replaces_state: event.eventId };
}
