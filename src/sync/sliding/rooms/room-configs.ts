import { badJson } from '../../../protocol/index.ts';
import type { ListRequest } from '../request.ts';
import { RequiredState } from './required-state.ts';
import { combine, type RoomConfig } from './room-config.ts';

/** Maximum length of the required state of one room as text; clients use some 2,000 characters. */
const maxStateLength = 32 * 1024;

/**
 * Maximum length of all combined required states of one request. Bounds CPU time and memory, because the
 * rooms may be in any combination of 100 lists.
 */
const maxCombinedLength = 1024 * 1024;

/** Length that each combined required state counts besides its text. */
const combinationLength = 100;

/** The room configurations of one request. Equal ones are one object, and each pair is combined once. */
export class RoomConfigs {
  readonly #userId: string;
  readonly #maxTimelineEvents: number;
  readonly #byText = new Map<string, RoomConfig>();
  readonly #combined = new Map<RoomConfig, Map<RoomConfig, RoomConfig>>();
  #combinedLength = 0;

  /** @param maxTimelineEvents maximum number of events of a timeline */
  constructor(userId: string, maxTimelineEvents: number) {
    this.#userId = userId;
    this.#maxTimelineEvents = maxTimelineEvents;
  }

  /**
   * Returns the configuration of a list or subscription.
   * @throws MatrixError M_BAD_JSON when the required state is too long
   */
  of({ timeline_limit, required_state }: Pick<ListRequest, 'timeline_limit' | 'required_state'>): RoomConfig {
    return this.#shared({
      timelineLimit: Math.min(timeline_limit, this.#maxTimelineEvents),
      state: RequiredState.of([required_state ?? []], this.#userId),
    });
  }

  /**
   * Returns a configuration that satisfies both.
   * @throws MatrixError M_BAD_JSON when the required state is too long
   */
  combined(one: RoomConfig, other: RoomConfig): RoomConfig {
    if (one === other) return one;
    const byOther = this.#combined.get(one) ?? new Map<RoomConfig, RoomConfig>();
    const known = byOther.get(other);
    if (known) return known;
    const both = this.#shared(combine(one, other));
    this.#combinedLength += both.state.text.length + combinationLength;
    if (this.#combinedLength > maxCombinedLength) throw tooLong();
    this.#combined.set(one, byOther.set(other, both));
    return both;
  }

  #shared(config: RoomConfig): RoomConfig {
    const { text } = config.state;
    if (text.length > maxStateLength) throw tooLong();
    const key = `${config.timelineLimit} ${text}`;
    const known = this.#byText.get(key);
    if (known) return known;
    this.#byText.set(key, config);
    return config;
  }
}

const tooLong = () => badJson('The required_state is too long');
