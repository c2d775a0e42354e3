/**
 * Opens a PostgreSQL database exclusively, as a server does, and follows messages of the parent process: `begin`
 * begins a transaction that writes a row, `commit` ends it. Reports each step, and the loss of the lease.
 */

import { openDatabaseExclusively, type Writer } from '../../../src/kernel/database/index.ts';
import { silentLogger } from '../../../src/kernel/observability/index.ts';

const report = (text: string) => process.send?.(text);
const database = await openDatabaseExclusively(
  JSON.parse(process.argv[2]!),
  { log: silentLogger },
  ({ name }) => report(`lost: ${name}`),
);
const committing = Promise.withResolvers<void>();

async function write(): Promise<void> {
  await database.transaction(async (writer: Writer<{ notes: { text: string } }>) => {
    await writer.insertInto('notes').values({ text: 'of the holder' }).execute();
    report('begun');
    await committing.promise;
  });
}

process.on('message', (message) => {
  if (message === 'commit') committing.resolve();
  if (message !== 'begin') return;
  write().then(
    () => report('committed'),
    () => report('failed'),
  );
});
report('open');
