import { badJson } from '../../../protocol/index.ts';
import type { ListRequest } from '../request.ts';
import { RequiredState } from './required-state.ts';
import { combine, type RoomConfig } from './room-config.ts';

/** Maximum characters of the required state of one room as text; clients use some 2,000. */
const maxStateLength = 32 * 1024;

/**
 * Maximum characters of all combined required states of one request. Bounds CPU time and memory: up to 100 lists have
 * many combinations, and each room may be in another one.
 */
const maxCombinedLength = 1024 * 1024;

/** Characters that are counted for each combined required state in addition to its text. */
const combinationLength = 100;

/** The room configurations of one request. Equal configurations are one object, and each pair is combined once. */
export class RoomConfigs {
  readonly #userId: string;
  readonly #maxTimelineEvents: number;
  /** The configurations by their timeline limit and the text of their required state. */
  readonly #byText = new Map<string, RoomConfig>();
  /** The combinations of two configurations, by the first and then by the second. */
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
   * Returns a configuration that satisfies both configurations.
   * @throws MatrixError M_BAD_JSON when the required state is too long
   */
  combined(a: RoomConfig, b: RoomConfig): RoomConfig {
    if (a === b) return a;
    const combinationsOfA = this.#combined.get(a) ?? new Map<RoomConfig, RoomConfig>();
    const cached = combinationsOfA.get(b);
    if (cached) return cached;
    const both = this.#shared(combine(a, b));
    this.#combinedLength += both.state.text.length + combinationLength;
    if (this.#combinedLength > maxCombinedLength) throw tooLong();
    this.#combined.set(a, combinationsOfA.set(b, both));
    return both;
  }

  /** Returns the object that represents all configurations equal to this one. @throws MatrixError M_BAD_JSON */
  #shared(config: RoomConfig): RoomConfig {
    const { text } = config.state;
    if (text.length > maxStateLength) throw tooLong();
    const key = `${config.timelineLimit} ${text}`;
    const equalConfig = this.#byText.get(key);
    if (equalConfig) return equalConfig;
    this.#byText.set(key, config);
    return config;
  }
}

const tooLong = () => badJson('The required_state is too long');
