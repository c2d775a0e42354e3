import { sql } from 'kysely';
import type { Migration } from '../../kernel/database/index.ts';
import { EventFlag } from '../tables.ts';

/** Withholds from clients the redactions whose targets are not stored. */
export const withheldRedactionsMigration: Migration = {
  name: 'rooms/0013-withheld-redactions',
  async up({ db }) {
    const pending = sql`select redaction_nid from pending_redactions`;
    await sql`delete from event_times where nid in (${pending})`.execute(db);
    await sql`update events set flags = flags + ${EventFlag.withheld} where nid in (${pending})`.execute(db);
  },
};
