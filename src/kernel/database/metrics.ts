import type { Metrics } from '../observability/index.ts';
import type { DatabaseStatistics } from './statistics.ts';

/** Exposes the statistics of a database as metrics. */
export function reportStatistics(metrics: Metrics, statistics: Readonly<DatabaseStatistics>): void {
  metrics.counter({
    name: 'server_database_statements_total',
    help: 'Statements sent to the database, by purpose.',
    labelNames: ['purpose'],
    collect() {
      this.reset();
      this.inc({ purpose: 'read' }, statistics.reads);
      this.inc({ purpose: 'scan' }, statistics.scans);
      this.inc({ purpose: 'write' }, statistics.writes);
    },
  });
  metrics.counter({
    name: 'server_database_transactions_total',
    help: 'Transactions and batches, including retries.',
    labelNames: ['kind'],
    collect() {
      this.reset();
      this.inc({ kind: 'transaction' }, statistics.transactions);
      this.inc({ kind: 'batch' }, statistics.batches);
    },
  });
  metrics.counter({
    name: 'server_database_flushes_total',
    help: 'Commits that waited for the disk.',
    collect() {
      this.reset();
      this.inc(statistics.flushes);
    },
  });
}
