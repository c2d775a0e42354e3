import type { SentChanges } from './connection.ts';
import { nothingSent, type SentRoom } from './sent-room.ts';

/** Maximum number of different `required_state` parameters that a connection may use. */
const maxTexts = 256;

/** Maximum characters of all `required_state` parameters that a connection uses. */
const maxLength = 256 * 1024;

/**
 * The different `required_state` parameters that a connection has used, as `RequiredState.text`, without duplicates in
 * memory.
 */
export class StateTexts {
  /** The required states of a new connection. */
  static readonly first = new StateTexts([nothingSent.requiredState]);
  /** Number of characters of all texts. */
  readonly length: number;
  /** Maps each text to itself, so that for an equal text the string that is in memory is found. */
  readonly #texts: ReadonlyMap<string, string>;

  constructor(texts: Iterable<string>) {
    this.#texts = new Map([...texts].map((text) => [text, text]));
    this.length = this.all.reduce((sum, text) => sum + text.length, 0);
  }

  /** The texts, in the order of their first use. */
  get all(): string[] {
    return [...this.#texts.keys()];
  }

  /** Whether a connection has used too many states, so that its client must start again. */
  get areTooMany(): boolean {
    return this.#texts.size > maxTexts || this.length > maxLength;
  }

  /** Returns these texts and the required states of an answer; this object itself if the answer adds none. */
  withStates(changes: SentChanges): StateTexts {
    const texts = new Set(this.#texts.keys());
    for (const sent of changes.values()) if (sent) texts.add(sent.requiredState);
    return texts.size === this.#texts.size ? this : new StateTexts(texts);
  }

  /**
   * Returns the room with the string of this object that equals its `requiredState`, so that equal strings are in
   * memory once.
   */
  withSharedText(sent: SentRoom): SentRoom {
    return { ...sent, requiredState: this.#texts.get(sent.requiredState) ?? sent.requiredState };
  }
}
