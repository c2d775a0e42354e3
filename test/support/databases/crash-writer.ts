/**
 * Writes pairs of rows as fast as it can and reports each acknowledged pair to the parent process, until it
 * is killed.
 */

import { openDatabase, type Writer } from '../../../src/kernel/database/index.ts';
import { silentLogger } from '../../../src/kernel/observability/index.ts';

const database = await openDatabase(JSON.parse(process.argv[2]!), { log: silentLogger });
let last = 0;

async function keepWriting(): Promise<void> {
  for (;;) {
    last += 1;
    const id = last;
    if (id % 2 === 0) {
      const pairs = [
        [id, id],
        [-id, id],
      ];
      await database.batch([{ sql: 'insert into rows (id, pair) values (?, ?)', rows: pairs }]);
    } else {
      await database.transaction(async (writer: Writer<{ rows: { id: number; pair: number } }>) => {
        await writer.insertInto('rows').values({ id, pair: id }).execute();
        await writer.insertInto('rows').values({ id: -id, pair: id }).execute();
      });
    }
    process.send?.(id);
  }
}

await Promise.all(Array.from({ length: 16 }, keepWriting));
