import type { Clock } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { StoredEvent } from '../../room-engine/index.ts';
import type { EventRelations, Viewer } from '../event-relations.ts';
import type { VisibleEvent } from './room-view.ts';
import { SharedText } from './shared-text.ts';

/** Returns the members of `unsigned` that only the device which sent an event gets; `undefined` for other events. */
export type SentWith = (stored: StoredEvent) => JsonObject | undefined;

/** Renders events for clients: `ClientEvents`. */
export interface EventRenderer {
  readonly relations: EventRelations;
  render(
    events: readonly VisibleEvent[],
    viewer: Viewer,
    format: 'with room id' | 'without room id',
  ): Promise<JsonObject[]>;
  sentWith(viewer: Viewer): SentWith | Promise<SentWith>;
  renderPlain(stored: StoredEvent): JsonObject | undefined;
}

/**
 * Renders events for clients as JSON text. The text is made once for all members of a room, and members are added to
 * it for the device that sent the event; only readers of events with relations, or of erased users, get a different one.
 */
export class EventTexts {
  readonly #renderer: EventRenderer;
  readonly #clock: Clock;
  readonly #texts = new WeakMap<StoredEvent, SharedText>();
  readonly #rendering = new LoadOnce<StoredEvent, void>();

  constructor(renderer: EventRenderer, clock: Clock) {
    this.#renderer = renderer;
    this.#clock = clock;
  }

  /**
   * Returns the texts of events as the viewer sees them, in the same order: without `room_id`, as in /sync, unless the
   * room is given.
   */
  async render(events: readonly VisibleEvent[], viewer: Viewer, roomId?: string): Promise<string[]> {
    const known = this.#renderer.relations.parents(events);
    const parents = 'then' in known ? await known : known;
    const isShared = (event: VisibleEvent) => isSharedWith(event) && !parents.has(event.stored.nid);
    const special = events.filter((event) => !isShared(event));
    const format = roomId === undefined ? 'without room id' : 'with room id';
    const specialTexts = new Map<StoredEvent, string>();
    if (special.length > 0) {
      const rendered = await this.#renderer.render(special, viewer, format);
      for (const [index, { stored }] of special.entries())
        specialTexts.set(stored, JSON.stringify(rendered[index]));
    }
    const isOwn = ({ stored }: VisibleEvent) => stored.event.sender === viewer.userId;
    const sent = events.some(isOwn) ? await this.#renderer.sentWith(viewer) : undefined;
    let shared = events.map(({ stored }) => this.peek(stored));
    const missing = events.filter(({ stored }, index) => !shared[index] && !specialTexts.has(stored));
    if (missing.length > 0) {
      await this.#prepareAll(missing);
      shared = events.map(({ stored }) => this.peek(stored));
    }
    const now = this.#clock.now();
    const start = roomId === undefined ? '{' : `{"room_id":${JSON.stringify(roomId)},`;
    return events.map(({ stored, membership }, index) => {
      const text =
        specialTexts.get(stored) ?? shared[index]?.at(now, membership, start, membersText(sent?.(stored)));
      if (text === undefined) throw new Error('an event was not rendered');
      return text;
    });
  }

  /** Returns the shared text if `prepare` has made it and no redaction came since. */
  peek(stored: StoredEvent): SharedText | undefined {
    const text = this.#texts.get(stored);
    return text?.redactedBy === stored.redactedBy ? text : undefined;
  }

  /**
   * Makes the shared text once for all members whose syncs a new event answers. For most messages it returns at once.
   */
  prepare(event: VisibleEvent): void | Promise<void> {
    return this.#makePlain(event.stored) ? undefined : this.#read(event);
  }

  /** @returns whether the shared text is there, because making it needs no other event */
  #makePlain(stored: StoredEvent): boolean {
    const event = this.#renderer.renderPlain(stored);
    if (!event) return false;
    this.#texts.set(stored, new SharedText(event, stored.event.originServerTs, undefined));
    return true;
  }

  async #read(event: VisibleEvent): Promise<void> {
    await this.#rendering.run(event.stored, () => this.#renderTexts([event]));
    // The event may have been redacted while it was being rendered.
    if (!this.peek(event.stored)) await this.#read(event);
  }

  async #prepareAll(events: readonly VisibleEvent[]): Promise<void> {
    const others = events.filter(({ stored }) => !this.#makePlain(stored));
    if (others.length > 1) await this.#renderTexts(others);
    const missing = others.filter(({ stored }) => !this.peek(stored));
    await Promise.all(missing.map((event) => this.#read(event)));
  }

  async #renderTexts(events: readonly VisibleEvent[]): Promise<void> {
    const redactions = events.map(({ stored }) => stored.redactedBy);
    const otherUser = { userId: '', deviceId: undefined };
    const rendered = await this.#renderer.render(events, otherUser, 'without room id');
    for (const [index, { stored }] of events.entries()) {
      const event = rendered[index];
      if (!event) throw new Error('an event was not rendered');
      this.#texts.set(stored, new SharedText(event, stored.event.originServerTs, redactions[index]));
    }
  }
}

/** Whether the viewer gets the text that all other members get. */
const isSharedWith = ({ membership, isErased }: VisibleEvent): boolean =>
  (membership === 'join' || membership === undefined) && !isErased;

/** Returns fields of an object as JSON text, each with a comma in front. */
const membersText = (members: JsonObject | undefined): string =>
  members === undefined ? '' : `,${JSON.stringify(members).slice(1, -1)}`;
