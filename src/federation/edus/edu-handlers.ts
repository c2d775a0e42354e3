import { isOutage } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../protocol/index.ts';

/**
 * Handles the content of an EDU. The content was not validated before: the handler must ignore malformed content, and
 * content about users of other servers than `origin`. An error is logged and affects no other EDU. Only a database
 * outage fails the transaction: the other server then repeats it, so handlers must be idempotent.
 */
export type EduHandler = (origin: string, content: JsonObject) => Promise<void> | void;

/** The handlers that one slice has, by EDU type. */
export type EduHandlersByType = Readonly<Record<string, EduHandler>>;

/** Handlers of the EDUs of other servers, by type. Source: server-server API, "EDUs". */
export class EduHandlers {
  readonly #handlers = new Map<string, EduHandler>();
  readonly #log: Logger;

  /** @throws Error when two slices handle the same type */
  constructor(log: Logger, slices: readonly EduHandlersByType[] = []) {
    this.#log = log;
    for (const [type, handler] of slices.flatMap((handlers) => Object.entries(handlers))) {
      if (this.#handlers.has(type)) throw new Error(`EDUs of type ${type} have two handlers`);
      this.#handlers.set(type, handler);
    }
  }

  /**
   * Passes the EDUs of one transaction to their handlers, one after the other. Rejects during a database
   * outage: otherwise a to-device message would be acknowledged and lost.
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
        this.#log.warn({ err: error, origin, type }, 'An EDU of another server could not be handled');
      }
    }
  }
}
