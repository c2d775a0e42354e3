import { hash } from 'node:crypto';
import { type Cache, type CacheRegistry, MiB } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import { canonicalJson, invalidParam, type JsonObject, notFound, parseJson } from '../protocol/index.ts';
import { compileFilter, type Filter, noFilter } from './compile-filter.ts';
import { checkFilter } from './filter-json.ts';
import { deleteOldest, insertFilter, readStoredFilter } from './store.ts';
import type { FilterTables } from './tables.ts';

/** Maximum number of stored filters of a user; the oldest are deleted. Clients store a handful. */
const maxFilters = 500;

/** Maximum number of cached compiled filters. */
const maxCachedFilters = 2000;

/** Maximum characters of an inline filter, and maximum depth of its JSON. */
const inlineLimits = { maxSize: 65_536, maxDepth: 10 };

/** Maximum characters of an inline filter that is cached. */
const maxCachedLength = 2_000;

const unknownFilter = () => notFound('Filter not found');

export interface FiltersDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly caches: CacheRegistry;
}

/** Filters that clients have stored. Source: client-server API, "Filtering". */
export class Filters {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #compiled: Cache<string, CachedFilter>;

  constructor({ database, clock, caches }: FiltersDeps) {
    this.#compiled = caches.create('filters', {
      size: maxCachedFilters,
      maxBytes: 4 * MiB,
      sizeOf: ({ bytes }) => bytes,
    });
    this.#database = database;
    this.#clock = clock;
  }

  /**
   * Stores a filter.
   * @returns its id, which is the same for the same content
   * @throws MatrixError M_BAD_JSON
   */
  async define(userId: string, definition: JsonObject): Promise<string> {
    checkFilter(definition);
    const text = canonicalJson(definition, 'as written');
    const filterId = hash('sha256', text, 'base64url').slice(0, 22);
    const row = { user_id: userId, filter_id: filterId, definition: text, created_at: this.#clock.now() };
    if (await readStoredFilter(this.#database.reader<FilterTables>(), userId, filterId)) return filterId;
    await this.#database.transaction<FilterTables, void>(async (writer) => {
      await insertFilter(writer, row);
      await deleteOldest(writer, userId, maxFilters);
    });
    return filterId;
  }

  /**
   * Returns the JSON of a stored filter.
   * @throws MatrixError M_NOT_FOUND
   */
  async get(userId: string, filterId: string): Promise<JsonObject> {
    const definition = filterId.includes('\0')
      ? undefined
      : await readStoredFilter(this.#database.reader<FilterTables>(), userId, filterId);
    if (definition === undefined) throw unknownFilter();
    return definition;
  }

  /** Returns the result of `resolve` from memory; `undefined` when it is not cached. */
  peek(userId: string, parameter: string | undefined): Filter | undefined {
    if (parameter === undefined || parameter === '') return noFilter;
    return this.#compiled.get(isInline(parameter) ? parameter : keyOf(userId, parameter))?.filter;
  }

  /**
   * Returns the compiled filter for the query parameter `filter`, which is an id or inline JSON. Without the parameter,
   * everything passes.
   * @throws MatrixError M_INVALID_PARAM for an unknown id; M_NOT_JSON, M_BAD_JSON for an invalid filter
   */
  async resolve(userId: string, parameter: string | undefined): Promise<Filter> {
    if (parameter === undefined || parameter === '') return noFilter;
    const known = this.peek(userId, parameter);
    if (known) return known;
    if (isInline(parameter)) {
      const filter = compileFilter(parseJson(parameter, inlineLimits));
      if (parameter.length <= maxCachedLength) this.#keep(parameter, filter, parameter.length);
      return filter;
    }
    const key = keyOf(userId, parameter);
    if (parameter.includes('\0')) throw invalidParam('Unknown filter');
    const definition = await readStoredFilter(this.#database.reader<FilterTables>(), userId, parameter);
    if (definition === undefined) throw invalidParam('Unknown filter');
    const filter = compileFilter(definition);
    this.#keep(key, filter, JSON.stringify(definition).length);
    return filter;
  }

  /** Caches a filter. @param length characters of its JSON */
  #keep(key: string, filter: Filter, length: number): void {
    this.#compiled.set(key, { filter, bytes: 2_000 + compiledBytesPerCharacter * length });
  }
}

/** Bytes of a compiled filter for each character of its JSON: a list of short types becomes a set and functions. */
const compiledBytesPerCharacter = 8;

interface CachedFilter {
  readonly filter: Filter;
  /** Estimated bytes. */
  readonly bytes: number;
}

/** Whether the query parameter is inline JSON, which is its own cache key for all users, and not the id of a filter. */
const isInline = (parameter: string) => parameter.startsWith('{');

const keyOf = (userId: string, filterId: string) => `${userId} ${filterId}`;
