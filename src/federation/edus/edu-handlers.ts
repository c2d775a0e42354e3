import { isOutage } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../protocol/index.ts';

/**
 * Takes the content of an EDU. Nothing of it was checked: what makes no sense, or is about users of other servers than
 * `origin`, is ignored. What it throws is logged and harms no other EDU, unless the database is not there: then the other
 * server sends everything again, so it has to be able to take the same twice.
 */
export type EduHandler = (origin: string, content: JsonObject) => Promise<void> | void;

/** What is done with the EDUs of other servers, by type. Source: server-server API, "EDUs". */
export class EduHandlers {
  readonly #handlers = new Map<string, EduHandler>();
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** @throws when the type has a handler already */
  register(type: string, handler: EduHandler): void {
    if (this.#handlers.has(type)) throw new Error(`EDUs of type ${type} have a handler already`);
    this.#handlers.set(type, handler);
  }

  /**
   * Hands the EDUs of one transaction to their handlers, one after the other. Rejects when the database is not there: a
   * message to a device that was acknowledged and not kept would be lost.
   */
  async dispatch(origin: string, edus: readonly JsonValue[]): Promise<void> {
    for (const edu of edus) {
      const { edu_type: type, content } = isJsonObject(edu) ? edu : ({} as JsonObject);
      const handler = typeof type === 'string' ? this.#handlers.get(type) : undefined;
      if (handler === undefined || !isJsonObject(content)) continue;
      try {
        await handler(origin, content);
      } catch (error) {
        if (isOutage(error)) throw error;
        this.#log.warn({ err: error, origin, type }, 'An EDU could not be handled');
      }
    }
  }
}
