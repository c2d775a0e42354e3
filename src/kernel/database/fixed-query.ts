import type { Compilable, CompiledQuery } from 'kysely';
import type { Reader } from './database.ts';
import type { SqlValue } from './statement.ts';

/** Builds a query. Uses the parameters only as parameters of the query, each once and in the given order. */
type Build<S, P extends readonly SqlValue[], R> = (reader: Reader<S>, ...parameters: P) => Compilable<R>;

/**
 * A frequent query of which only the parameters change. It is built and compiled only at its first use with each
 * database, because building it takes longer than running a short query.
 */
export class FixedQuery<S, P extends readonly SqlValue[], R> {
  readonly #build: Build<S, P, R>;
  /** The compiled query by the adapter of the reader, which all readers and writers of a database share. */
  readonly #compiled = new WeakMap<object, CompiledQuery<R>>();

  constructor(build: Build<S, P, R>) {
    this.#build = build;
  }

  /** Runs the query. @returns the rows */
  async execute(reader: Reader<S>, ...parameters: P): Promise<R[]> {
    const { adapter } = reader.getExecutor();
    let compiled = this.#compiled.get(adapter);
    if (compiled === undefined) {
      compiled = this.#build(reader, ...parameters).compile();
      if (!compiled.parameters.every((value, index) => value === parameters[index]))
        throw new TypeError('a fixed query must use its parameters in their order');
      this.#compiled.set(adapter, compiled);
    }
    const { rows } = await reader.executeQuery<R>({ ...compiled, parameters });
    return rows;
  }
}
