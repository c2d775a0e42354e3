import { hash } from 'node:crypto';
import type { AccountLifecycle } from '../accounts/index.ts';
import { RecentlyUsed } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import { type AnyWriter, type Database, writerFor } from '../kernel/database/index.ts';
import type { Publish } from '../kernel/streams/index.ts';
import { canonicalJson, invalidParam, type JsonObject, notFound, parseJson } from '../protocol/index.ts';
import { compileFilter, type Filter, noFilter } from './compile-filter.ts';
import { checkFilter } from './filter-json.ts';
import { deleteFilters, deleteOldest, insertFilter, readFilter } from './store.ts';
import type { FilterTables } from './tables.ts';

/** Filters that a user can have; the oldest go first. Clients store a handful. */
const maxFilters = 500;

/** Compiled filters that are kept in memory. */
const cached = 2000;

/** Characters of an inline filter, and levels of its JSON. */
const inlineLimits = { maxSize: 65_536, maxDepth: 10 };

/** Characters of an inline filter that is kept in memory. */
const longestCached = 2_000;

const unknownFilter = () => notFound('There is no such filter');

/** Filters that clients have stored. Source: client-server API, "Filtering". */
export class Filters implements AccountLifecycle {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #compiled = new RecentlyUsed<string, Filter>({ max: cached });

  constructor({ database, clock }: { database: Database; clock: Clock }) {
    this.#database = database;
    this.#clock = clock;
  }

  /**
   * Stores a filter.
   * @returns its id, the same for the same content
   * @throws MatrixError M_BAD_JSON
   */
  async define(userId: string, definition: JsonObject): Promise<string> {
    checkFilter(definition);
    const text = canonicalJson(definition, 'as written');
    const filterId = hash('sha256', text, 'base64url').slice(0, 22);
    const row = { user_id: userId, filter_id: filterId, definition: text, created_at: this.#clock.now() };
    if (await readFilter(this.#database.reader<FilterTables>(), userId, filterId)) return filterId;
    await this.#database.transaction<FilterTables, void>(async (writer) => {
      await insertFilter(writer, row);
      await deleteOldest(writer, userId, maxFilters);
    });
    return filterId;
  }

  /** A filter as it was stored. Throws MatrixError M_NOT_FOUND. */
  async get(userId: string, filterId: string): Promise<JsonObject> {
    const definition = filterId.includes('\0')
      ? undefined
      : await readFilter(this.#database.reader<FilterTables>(), userId, filterId);
    if (definition === undefined) throw unknownFilter();
    return definition;
  }

  /** What `resolve` finds when it is in memory. */
  peek(userId: string, parameter: string | undefined): Filter | undefined {
    if (parameter === undefined || parameter === '') return noFilter;
    return this.#compiled.get(isInline(parameter) ? parameter : keyOf(userId, parameter));
  }

  /**
   * The filter that the query parameter `filter` names or is; everything passes without one.
   * @throws MatrixError M_INVALID_PARAM for an unknown id; M_NOT_JSON, M_BAD_JSON for a bad filter
   */
  async resolve(userId: string, parameter: string | undefined): Promise<Filter> {
    if (parameter === undefined || parameter === '') return noFilter;
    const known = this.peek(userId, parameter);
    if (known) return known;
    if (isInline(parameter)) {
      const filter = compileFilter(parseJson(parameter, inlineLimits));
      if (parameter.length <= longestCached) this.#compiled.set(parameter, filter);
      return filter;
    }
    const key = keyOf(userId, parameter);
    if (parameter.includes('\0')) throw invalidParam('Unknown filter');
    const definition = await readFilter(this.#database.reader<FilterTables>(), userId, parameter);
    if (definition === undefined) throw invalidParam('Unknown filter');
    const filter = compileFilter(definition);
    this.#compiled.set(key, filter);
    return filter;
  }

  deactivated(writer: AnyWriter, _publish: Publish, { userId }: { userId: string }): Promise<void> {
    return deleteFilters(writerFor<FilterTables>(writer), userId);
  }
}

/** Such a filter is nobody's own. Keys of stored ones begin with a user id. */
const isInline = (parameter: string) => parameter.startsWith('{');

const keyOf = (userId: string, filterId: string) => `${userId} ${filterId}`;
