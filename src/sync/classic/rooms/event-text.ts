import type { StoredEvent } from '../../../room-engine/index.ts';
import type {
  ClientEvents,
  EventRelations,
  EventTexts,
  SharedText,
  VisibleEvent,
} from '../../../rooms/index.ts';
import type { Recipient } from '../recipient.ts';

/** Renders events for syncs as JSON text, in the format and with the fields that the client's filter requests. */
export class EventText {
  readonly #clientEvents: ClientEvents;
  readonly #texts: EventTexts;
  readonly relations: EventRelations;

  constructor(clientEvents: ClientEvents) {
    this.#clientEvents = clientEvents;
    this.#texts = clientEvents.texts;
    this.relations = clientEvents.relations;
  }

  /** Returns the texts of events as the recipient sees them and as the filter wants them, in the same order. */
  async render(events: readonly VisibleEvent[], recipient: Recipient): Promise<string[]> {
    const { format, selectFields } = recipient.filter;
    const texts =
      format === 'client'
        ? await this.#texts.render(events, recipient)
        : (await this.#clientEvents.render(events, recipient, format)).map((event) => JSON.stringify(event));
    return selectFields ? texts.map((text) => JSON.stringify(selectFields(JSON.parse(text)))) : texts;
  }

  /** Returns the text of an event for all members if `prepare` has made it and the event was not redacted since. */
  peek(stored: StoredEvent): SharedText | undefined {
    return this.#texts.peek(stored);
  }

  /**
   * Renders the text of a new event once for all syncs that return the event, because all members share the text.
   * Returns no promise when the text needs no other event.
   */
  prepare(event: VisibleEvent): void | Promise<void> {
    return this.#texts.prepare(event);
  }
}
