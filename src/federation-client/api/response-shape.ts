import { isEventId, isJsonObject, type JsonObject, type JsonValue } from '../../protocol/index.ts';
import { MalformedResponse } from '../requests/errors.ts';

/**
 * Reads and checks the fields of another server's response. Every method throws MalformedResponse for a field of the
 * wrong type.
 */
export class ResponseShape {
  readonly #server: string;
  readonly #answer: JsonObject;

  constructor(server: string, answer: JsonObject) {
    this.#server = server;
    this.#answer = answer;
  }

  /** Reads an object. */
  object(name: string): JsonObject {
    const value = this.#answer[name];
    if (!isJsonObject(value)) throw this.#malformed(`${name} is not an object`);
    return value;
  }

  /** Reads a string; `undefined` when the field is absent. */
  optionalString(name: string): string | undefined {
    const value = this.#answer[name];
    if (value !== undefined && typeof value !== 'string') throw this.#malformed(`${name} is not a string`);
    return value;
  }

  /** Reads a list of any values. @param max maximum number of entries */
  list(name: string, max: number): readonly JsonValue[] {
    const value = this.#answer[name];
    if (!Array.isArray(value)) throw this.#malformed(`${name} is not a list`);
    if (value.length > max) throw this.#malformed(`${name} has more than ${max} entries`);
    return value as readonly JsonValue[];
  }

  /** Reads the only entry of a list. */
  only(name: string): JsonValue {
    const [entry] = this.list(name, 1);
    if (entry === undefined) throw this.#malformed(`${name} is empty`);
    return entry;
  }

  /** Reads a list of event ids. @param max maximum number of entries */
  eventIds(name: string, max: number): readonly string[] {
    const ids = this.list(name, max);
    if (!ids.every(isEventId)) throw this.#malformed(`${name} contains values that are not event ids`);
    return ids as readonly string[];
  }

  /** Reads an event id. */
  eventId(name: string): string {
    const value = this.#answer[name];
    if (!isEventId(value)) throw this.#malformed(`${name} is not an event id`);
    return value;
  }

  /** Reads a safe integer. */
  integer(name: string): number {
    const value = this.#answer[name];
    if (!Number.isSafeInteger(value)) throw this.#malformed(`${name} is not an integer`);
    return value as number;
  }

  #malformed(problem: string): MalformedResponse {
    return new MalformedResponse(this.#server, problem);
  }
}
