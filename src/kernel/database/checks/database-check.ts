import { CompiledQuery } from 'kysely';
import type { AnyWriter } from '../any-writer.ts';
import { type Database, writerFor } from '../database.ts';

/** A search for one kind of inconsistency in a database. Slices declare their checks in their manifests. */
export interface DatabaseCheck {
  /** Names what the check finds, for instance "access tokens of devices that do not exist". */
  readonly problem: string;
  find(stores: CheckedStores): Promise<CheckFindings>;
  /** The database that `mend` writes to; by default `main`. */
  readonly store?: keyof CheckedStores;
  /**
   * Repairs all findings without a loss of data. Called only while no server runs. Absent where an operator must
   * decide.
   */
  mend?(writer: AnyWriter): Promise<void>;
}

/** The databases of a server; both are the same unless the option `databases` says otherwise. */
export interface CheckedStores {
  readonly main: Database;
  /** The database that contains the state groups. */
  readonly state: Database;
}

/** The findings of a check. */
export interface CheckFindings {
  readonly count: number;
  /** The first few findings: ids and names. */
  readonly examples: readonly string[];
}

/** Maximum number of examples of one check. */
export const maxExamples = 5;

export interface RowsCheck {
  readonly problem: string;
  /** Portable SQL: selects the wrong rows, with a column `subject` that names each. */
  readonly select: string;
  /** Portable SQL that repairs all wrong rows; absent where an operator must decide. */
  readonly mend?: string;
}

/** Makes a check from a query that selects the wrong rows. */
export function rowsCheck({ problem, select, mend }: RowsCheck): DatabaseCheck {
  return {
    problem,
    async find({ main }) {
      const run = async (text: string) =>
        (await main.scanner().executeQuery<Record<string, unknown>>(CompiledQuery.raw(text, []))).rows;
      const [counted] = await run(`select count(*) as found from (${select}) wrong`);
      const count = Number(counted?.['found']);
      if (count === 0) return { count, examples: [] };
      const rows = await run(`select subject from (${select}) wrong limit ${maxExamples}`);
      return { count, examples: rows.map(({ subject }) => String(subject)) };
    },
    ...(mend !== undefined && {
      async mend(writer) {
        await writerFor(writer).executeQuery(CompiledQuery.raw(mend, []));
      },
    }),
  };
}

/** Collects the findings of a check that is not a query. */
export class FindingCollector {
  readonly #examples: string[] = [];
  #count = 0;

  add(subject: string): void {
    this.#count += 1;
    if (this.#examples.length < maxExamples) this.#examples.push(subject);
  }

  get result(): CheckFindings {
    return { count: this.#count, examples: this.#examples };
  }
}
