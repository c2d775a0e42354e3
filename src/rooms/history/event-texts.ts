import type { Clock } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { TimeSlices } from '../../kernel/time-slices.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { StoredEvent } from '../../room-engine/index.ts';
import type { EventRelations, Viewer } from '../event-relations.ts';
import type { VisibleEvent } from './room-view.ts';
import { SharedText } from './shared-text.ts';

/** Characters that are rendered between two checks of the clock. */
const charactersPerCheck = 65_536;

/** The fixed cost of rendering one event, in characters: to render this many characters takes the same time. */
const charactersPerStep = 1_000;

/** Returns the fields of `unsigned` that only the sender of an event receives; `undefined` for events of other users. */
export type SenderFields = (stored: StoredEvent) => JsonObject | undefined;

/** Renders events for clients; implemented by `ClientEvents`. */
export interface EventRenderer {
  readonly relations: EventRelations;
  render(
    events: readonly VisibleEvent[],
    viewer: Viewer,
    format: 'with room id' | 'without room id',
  ): Promise<JsonObject[]>;
  senderFields(viewer: Viewer): SenderFields | Promise<SenderFields>;
  /** Returns a new event as clients other than the sender's receive it; `undefined` if that needs other events. */
  renderPlain(stored: StoredEvent): JsonObject | undefined;
}

/**
 * Renders events for clients as JSON text. The text is rendered once for all members of a room; for the device that
 * sent the event, fields of `unsigned` are added to this text. Only events with relations, events of erased users, and
 * events that the viewer sees without having been joined are rendered for each viewer.
 */
export class EventTexts {
  readonly #renderer: EventRenderer;
  readonly #clock: Clock;
  readonly #slices: TimeSlices;
  readonly #texts = new WeakMap<StoredEvent, SharedText>();
  readonly #rendering = new LoadOnce<StoredEvent, void>();

  constructor(renderer: EventRenderer, clock: Clock) {
    this.#renderer = renderer;
    this.#clock = clock;
    this.#slices = new TimeSlices(clock);
  }

  /**
   * Returns the texts of events as the viewer sees them, in the same order: without `room_id`, as in /sync, unless
   * `roomId` is present.
   */
  async render(events: readonly VisibleEvent[], viewer: Viewer, roomId?: string): Promise<string[]> {
    const parentNids = this.#renderer.relations.parents(events);
    const parents = 'then' in parentNids ? await parentNids : parentNids;
    const isShared = (event: VisibleEvent) => isSharedWith(event) && !parents.has(event.stored.nid);
    const individualEvents = events.filter((event) => !isShared(event));
    const format = roomId === undefined ? 'without room id' : 'with room id';
    const individualTexts = new Map<StoredEvent, string>();
    if (individualEvents.length > 0) {
      const rendered = await this.#renderer.render(individualEvents, viewer, format);
      await this.#inSlices(individualEvents.entries(), ([index, { stored }]) => {
        const text = JSON.stringify(rendered[index]);
        individualTexts.set(stored, text);
        return text.length;
      });
    }
    const isOwn = ({ stored }: VisibleEvent) => stored.event.sender === viewer.userId;
    const senderFields = events.some(isOwn) ? await this.#renderer.senderFields(viewer) : undefined;
    let shared = events.map(({ stored }) => this.peek(stored));
    const missing = events.filter(({ stored }, index) => !shared[index] && !individualTexts.has(stored));
    if (missing.length > 0) {
      await this.#prepareAll(missing);
      shared = events.map(({ stored }) => this.peek(stored));
    }
    const now = this.#clock.now();
    const start = roomId === undefined ? '{' : `{"room_id":${JSON.stringify(roomId)},`;
    return events.map(({ stored, membership }, index) => {
      const text =
        individualTexts.get(stored) ??
        shared[index]?.at(now, membership, start, fieldsText(senderFields?.(stored)));
      if (text === undefined) throw new Error('an event was not rendered');
      return text;
    });
  }

  /**
   * Returns the texts for members who did not send the events, in the same order. The events must have no relations and
   * no erased senders.
   */
  async shared(events: readonly StoredEvent[]): Promise<SharedText[]> {
    const missing = events.filter((stored) => !this.peek(stored));
    if (missing.length > 0)
      await this.#prepareAll(missing.map((stored) => ({ stored, membership: undefined })));
    return events.map((stored) => {
      const text = this.peek(stored);
      if (!text) throw new Error('an event was not rendered');
      return text;
    });
  }

  /** Returns the shared text if it was rendered and the event has not been redacted since. */
  peek(stored: StoredEvent): SharedText | undefined {
    const text = this.#texts.get(stored);
    return text?.redactedBy === stored.redactedBy ? text : undefined;
  }

  /**
   * Renders the shared text of a new event once, for the syncs of all members. Returns synchronously for most messages.
   */
  prepare(event: VisibleEvent): void | Promise<void> {
    return this.#renderPlain(event.stored) ? undefined : this.#renderOnce(event);
  }

  /** Renders the shared text if that needs no other event. @returns whether it was rendered */
  #renderPlain(stored: StoredEvent): boolean {
    const event = this.#renderer.renderPlain(stored);
    if (!event) return false;
    this.#texts.set(stored, new SharedText(event, stored.event.originServerTs, undefined));
    return true;
  }

  async #renderOnce(event: VisibleEvent): Promise<void> {
    await this.#rendering.run(event.stored, () => this.#renderTexts([event]));
    // The event may have been redacted while it was being rendered.
    if (!this.peek(event.stored)) await this.#renderOnce(event);
  }

  /** Renders the shared texts of events. Renders a text again if the event was redacted meanwhile. */
  async #prepareAll(events: readonly VisibleEvent[]): Promise<void> {
    for (let missing = events; missing.length > 0; ) {
      const otherEvents: VisibleEvent[] = [];
      await this.#inSlices(missing, (event) => {
        if (!this.#renderPlain(event.stored)) otherEvents.push(event);
        return this.peek(event.stored)?.length ?? 0;
      });
      if (otherEvents.length > 1) await this.#renderTexts(otherEvents);
      const unrendered = otherEvents.filter(({ stored }) => !this.peek(stored));
      await Promise.all(unrendered.map((event) => this.#renderOnce(event)));
      missing = events.filter(({ stored }) => !this.peek(stored));
    }
  }

  async #renderTexts(events: readonly VisibleEvent[]): Promise<void> {
    const redactions = events.map(({ stored }) => stored.redactedBy);
    const otherUser = { userId: '', deviceId: undefined };
    const rendered = await this.#renderer.render(events, otherUser, 'without room id');
    await this.#inSlices(events.entries(), ([index, { stored }]) => {
      const event = rendered[index];
      if (!event) throw new Error('an event was not rendered');
      const text = new SharedText(event, stored.event.originServerTs, redactions[index]);
      this.#texts.set(stored, text);
      return text.length;
    });
  }

  /**
   * Calls `step` for each item, with pauses where due.
   * @param step returns the number of characters that it has made
   */
  async #inSlices<T>(items: Iterable<T>, step: (item: T) => number): Promise<void> {
    let unchecked = 0;
    for (const item of items) {
      unchecked += charactersPerStep + step(item);
      if (unchecked < charactersPerCheck) continue;
      unchecked = 0;
      const pause = this.#slices.pauseIfDue();
      if (pause) await pause;
    }
  }
}

/** Whether the viewer receives the same text as all other members. */
const isSharedWith = ({ membership, isErased }: VisibleEvent): boolean =>
  (membership === 'join' || membership === undefined) && !isErased;

/** Returns fields of an object as JSON text, each with a comma in front. */
const fieldsText = (fields: JsonObject | undefined): string =>
  fields === undefined ? '' : `,${JSON.stringify(fields).slice(1, -1)}`;
