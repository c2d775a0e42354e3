import type { Clock } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { StoredEvent } from '../../room-engine/index.ts';
import type { EventRelations, Viewer } from '../event-relations.ts';
import type { VisibleEvent } from './room-view.ts';
import { SharedText } from './shared-text.ts';

/** Renders events for clients: `ClientEvents`. */
export interface EventRenderer {
  readonly relations: EventRelations;
  render(
    events: readonly VisibleEvent[],
    viewer: Viewer,
    format: 'with room id' | 'without room id',
  ): Promise<JsonObject[]>;
}

/**
 * Renders events for clients as JSON text. The text is made once for all members of a room: only the sender's
 * own devices, and readers of events with relations, get a different one.
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
    const isShared = (event: VisibleEvent) => isSharedWith(viewer, event) && !parents.has(event.stored.nid);
    const special = events.filter((event) => !isShared(event));
    const missing = events.filter((event) => isShared(event) && !this.peek(event.stored));
    const format = roomId === undefined ? 'without room id' : 'with room id';
    const own = special.length === 0 ? [] : await this.#renderer.render(special, viewer, format);
    await this.#prepareAll(missing);
    const ownTexts = new Map(special.map(({ stored }, index) => [stored, JSON.stringify(own[index])]));
    const now = this.#clock.now();
    const start = roomId === undefined ? '{' : `{"room_id":${JSON.stringify(roomId)},`;
    return events.map(({ stored, membership }) => {
      const text = ownTexts.get(stored);
      if (text !== undefined) return text;
      const shared = this.peek(stored);
      if (!shared) throw new Error('an event was not rendered');
      return shared.at(now, membership, start);
    });
  }

  /** Returns the shared text if `prepare` has made it and no redaction came since. */
  peek(stored: StoredEvent): SharedText | undefined {
    const text = this.#texts.get(stored);
    return text?.redactedBy === stored.redactedBy ? text : undefined;
  }

  /** Makes the shared text, once for all members whom a new event wakes at the same time. */
  async prepare(event: VisibleEvent): Promise<void> {
    await this.#rendering.run(event.stored, () => this.#renderTexts([event]));
    // The event may have been redacted while it was being rendered.
    if (!this.peek(event.stored)) await this.prepare(event);
  }

  async #prepareAll(events: readonly VisibleEvent[]): Promise<void> {
    if (events.length > 1) await this.#renderTexts(events);
    const missing = events.filter(({ stored }) => !this.peek(stored));
    await Promise.all(missing.map((event) => this.prepare(event)));
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
const isSharedWith = (viewer: Viewer, { stored, membership, isErased }: VisibleEvent): boolean =>
  (membership === 'join' || membership === undefined) && !isErased && stored.event.sender !== viewer.userId;
