import { CompiledQuery } from 'kysely';
import type { DatabaseCheck } from './database-check.ts';
import { FindingCollector } from './database-check.ts';

/** Finds damaged pages and indexes of a SQLite file. */
export const sqliteFileCheck: DatabaseCheck = {
  problem: 'damaged pages or indexes of the SQLite file: restore a backup',
  async find({ main }) {
    const { rows } = await main
      .scanner()
      .executeQuery<Record<string, unknown>>(CompiledQuery.raw('pragma integrity_check(20)', []));
    const findings = new FindingCollector();
    for (const { integrity_check: text } of rows) if (text !== 'ok') findings.add(String(text));
    return findings.result;
  },
};
