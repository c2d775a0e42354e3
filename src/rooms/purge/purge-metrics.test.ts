import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createMetrics } from '../../kernel/observability/index.ts';
import { openPurgeMetrics } from './purge-metrics.ts';

it('openPurgeMetrics counts deleted messages by cause, and removed state groups', async () => {
  const metrics = await createMetrics();
  const counts = openPurgeMetrics(metrics);
  counts.deleted('retention', 200);
  counts.deleted('retention', 3);
  counts.groupsDeleted(7);
  const text = await metrics.render();
  assert.match(text, /^server_purged_events_total\{cause="administrator"\} 0$/m);
  assert.match(text, /^server_purged_events_total\{cause="retention"\} 203$/m);
  assert.match(text, /^server_removed_state_groups_total 7$/m);
});
