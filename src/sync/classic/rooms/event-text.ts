import type { Clock } from '../../../kernel/clock.ts';
import { LoadOnce } from '../../../kernel/load-once.ts';
import type { StoredEvent } from '../../../room-engine/index.ts';
import type { ClientEvents, EventRelations, Viewer, VisibleEvent } from '../../../rooms/index.ts';
import type { Recipient } from '../recipient.ts';

/** The reader's `membership` in `unsigned`, for readers who were joined when the event was sent. */
const asJoined = ',"membership":"join"';

/**
 * The JSON text of an event without its age, which changes, and the reader's membership, which only some
 * readers get.
 */
export class SharedText {
  /** Nid of the redaction that was known when the text was made. */
  readonly redactedBy: number | undefined;
  readonly #sentAt: number;
  readonly #beforeAge: string;
  readonly #afterAge: string;

  constructor(text: { sentAt: number; redactedBy: number | undefined; beforeAge: string; afterAge: string }) {
    this.redactedBy = text.redactedBy;
    this.#sentAt = text.sentAt;
    this.#beforeAge = text.beforeAge;
    this.#afterAge = text.afterAge;
  }

  /** @param now milliseconds since 1970 */
  at(now: number, membership: VisibleEvent['membership']): string {
    const age = Math.max(0, now - this.#sentAt);
    return this.#beforeAge + age + (membership === undefined ? '' : asJoined) + this.#afterAge;
  }
}

/**
 * Renders events for syncs as JSON text. The text is made once for all members of a room: only the sender's
 * own devices, and readers of events with relations, get a different one.
 */
export class EventText {
  readonly #clientEvents: ClientEvents;
  readonly relations: EventRelations;
  readonly #clock: Clock;
  readonly #texts = new WeakMap<StoredEvent, SharedText>();
  readonly #making = new LoadOnce<StoredEvent, void>();

  constructor(clientEvents: ClientEvents, clock: Clock) {
    this.#clientEvents = clientEvents;
    this.relations = clientEvents.relations;
    this.#clock = clock;
  }

  /**
   * Returns the texts of events as the recipient sees them and as the filter wants them, in the same order.
   */
  async render(events: readonly VisibleEvent[], recipient: Recipient): Promise<string[]> {
    const { format, selectFields } = recipient.filter;
    const texts =
      format === 'client'
        ? await this.#forClient(events, recipient)
        : (await this.#clientEvents.render(events, recipient, format)).map((event) => JSON.stringify(event));
    return selectFields ? texts.map((text) => JSON.stringify(selectFields(JSON.parse(text)))) : texts;
  }

  async #forClient(events: readonly VisibleEvent[], viewer: Viewer): Promise<string[]> {
    const known = this.relations.parents(events);
    const parents = 'then' in known ? await known : known;
    const isShared = (event: VisibleEvent) => this.#isShared(event, viewer) && !parents.has(event.stored.nid);
    const special = events.filter((event) => !isShared(event));
    const missing = events.filter((event) => isShared(event) && !this.peek(event.stored));
    const own =
      special.length === 0 ? [] : await this.#clientEvents.render(special, viewer, 'without room id');
    await Promise.all(missing.map((event) => this.prepare(event)));
    const ownTexts = new Map(special.map(({ stored }, index) => [stored, JSON.stringify(own[index])]));
    const now = this.#clock.now();
    return events.map(({ stored, membership }) => {
      const text = ownTexts.get(stored);
      if (text !== undefined) return text;
      const shared = this.peek(stored);
      if (!shared) throw new Error('an event was not rendered');
      return shared.at(now, membership);
    });
  }

  /** Whether the viewer gets the text that all other members get. */
  #isShared({ stored, membership }: VisibleEvent, viewer: Viewer): boolean {
    return (membership === 'join' || membership === undefined) && stored.event.sender !== viewer.userId;
  }

  /** Returns the shared text if `prepare` has made it and no redaction came since. */
  peek(stored: StoredEvent): SharedText | undefined {
    const text = this.#texts.get(stored);
    return text?.redactedBy === stored.redactedBy ? text : undefined;
  }

  /** Makes the shared text, once for all members whom a new event wakes at the same time. */
  async prepare(event: VisibleEvent): Promise<void> {
    await this.#making.run(event.stored, () => this.#make(event));
    // The event may have been redacted while it was being rendered.
    if (!this.peek(event.stored)) await this.prepare(event);
  }

  async #make({ stored, membership }: VisibleEvent): Promise<void> {
    const { redactedBy } = stored;
    const otherUser = { userId: '', deviceId: undefined };
    const [event] = await this.#clientEvents.render([{ stored, membership }], otherUser, 'without room id');
    if (!event) throw new Error('an event was not rendered');
    const { unsigned, ...rest } = event;
    const { age: _age, membership: _membership, ...others } = (unsigned ?? {}) as Record<string, unknown>;
    const head = JSON.stringify(rest).slice(0, -1);
    const tail = JSON.stringify(others);
    const text = new SharedText({
      sentAt: stored.event.originServerTs,
      redactedBy,
      beforeAge: `${head},"unsigned":{"age":`,
      afterAge: `${tail === '{}' ? '}' : `,${tail.slice(1)}`}}`,
    });
    this.#texts.set(stored, text);
  }
}
