import { type Cache, type CacheRegistry, MiB, sizeOfJson } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import { jsonFacts, Stream, type StreamWriter } from '../../kernel/streams/index.ts';
import { TimeSlices } from '../../kernel/time-slices.ts';
import { whenReady } from '../../kernel/when-ready.ts';
import {
  type CompiledRuleset,
  compileUserRulesInSteps,
  effectiveRuleset,
  type JsonObject,
  NO_USER_RULES,
  type Ruleset,
  tooLarge,
  type UserPushRules,
} from '../../protocol/index.ts';
import type { PushTables } from '../tables.ts';
import { readRules, replaceRules } from './store.ts';

/** A user has changed their push rules. */
export interface PushRulesChange {
  readonly userId: string;
}

export interface PushRulesDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly caches: CacheRegistry;
  readonly clock: Clock;
}

/** The rules of a user, compiled for evaluation. */
export interface DatedRules {
  readonly compiled: CompiledRuleset;
  /** The position of the last change; 0 if the rules were never changed. */
  readonly position: number;
}

/** The rules of a user in memory. */
interface CachedRules extends DatedRules {
  readonly rules: UserPushRules;
}

/** Maximum number of users whose rules are cached; users without changes share one ruleset. */
const maxCachedUsers = 40_000;

/**
 * Maximum bytes of all rules of a user: enough for more than a thousand muted rooms. Larger rules would not fit into
 * the cache, and would be compiled again for each message.
 */
const maxBytes = 262_144;

/** The push rules of local users. Source: client-server API, "Push Rules". */
export class PushRules {
  readonly pushRulesStream = new Stream<PushRulesChange>('push_rules', jsonFacts());
  readonly #deps: PushRulesDeps;
  readonly #cache: Cache<string, CachedRules>;
  readonly #slices: TimeSlices;

  constructor(deps: PushRulesDeps) {
    this.#deps = deps;
    this.#slices = new TimeSlices(deps.clock);
    this.#cache = deps.caches.create('push_rules_by_user', {
      size: maxCachedUsers,
      maxBytes: 10 * MiB,
      // The rules and their compiled form.
      sizeOf: ({ rules }) => (rules === NO_USER_RULES ? 100 : 4 * sizeOfJson(rules)),
    });
    this.pushRulesStream.subscribe(({ userId }) => this.#cache.delete(userId));
  }

  /** Returns all rules of a user as clients see them. */
  async rulesetOf(userId: string): Promise<Ruleset> {
    return effectiveRuleset(userId, (await this.#load(userId)).rules);
  }

  /** Returns the changes of a user: their own rules, and their changes to default rules. */
  async userRulesOf(userId: string): Promise<UserPushRules> {
    return (await this.#load(userId)).rules;
  }

  /** Returns the content of a user's `m.push_rules` account data. */
  async content(userId: string): Promise<JsonObject> {
    // A ruleset is JSON; only its type is narrower.
    return { global: (await this.rulesetOf(userId)) as unknown as JsonObject };
  }

  /** Reports whether the last change of a user's rules has a position in `(after, upTo]`. */
  async changedIn(userId: string, after: number, upTo: number): Promise<boolean> {
    const position = await this.changedAt(userId);
    return position > after && position <= upTo;
  }

  /** Returns the position at which a user's rules changed last, 0 if they never changed; at once when they are in memory. */
  changedAt(userId: string): number | Promise<number> {
    return whenReady(this.#load(userId), ({ position }) => position);
  }

  /** Returns the compiled rules of a user, and when they changed last; at once when they are in memory. */
  compiled(userId: string): DatedRules | Promise<DatedRules> {
    return this.#load(userId);
  }

  /**
   * Replaces a user's rules by the result of `edit`, which is called again when the rules were changed meanwhile.
   * @throws MatrixError what `edit` throws; M_TOO_LARGE for rules of more than `maxBytes` that `edit` has made larger
   */
  async change(userId: string, edit: (rules: UserPushRules) => UserPushRules): Promise<void> {
    await this.#deps.streams.write<PushTables, void>(async (writer, publish) => {
      const position = publish(this.pushRulesStream, { userId });
      for (;;) {
        const stored = await readRules(writer, userId);
        const rules = stored?.rules ?? NO_USER_RULES;
        const json = JSON.stringify(edit(rules));
        if (Buffer.byteLength(json) > maxBytes && json.length > JSON.stringify(rules).length) {
          throw tooLarge(`Push rules of a user are limited to ${maxBytes} bytes`);
        }
        if (await replaceRules(writer, userId, stored?.position, { json, position })) return;
      }
    });
  }

  #load(userId: string): CachedRules | Promise<CachedRules> {
    return this.#cache.getOrLoad(userId, async () => {
      const stored = await readRules(this.#deps.database.reader<PushTables>(), userId);
      const rules = stored?.rules ?? NO_USER_RULES;
      const compiled = await this.#slices.run(compileUserRulesInSteps(rules));
      return { rules, compiled, position: stored?.position ?? 0 };
    });
  }
}
