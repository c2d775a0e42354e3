import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { entity } from '../test/metadata-documents.ts';
import { SamlMetadataSource } from './metadata-source.ts';

describe('SamlMetadataSource', () => {
  it('fetches metadata once for concurrent logins, and uses cached metadata for up to a day while it cannot be fetched', async () => {
    const clock = manualClock();
    let fetched = 0;
    let status = 200;
    const fetch = async (url: URL) => {
      fetched += 1;
      return { status, headers: {}, body: Buffer.from(entity('idp')), url };
    };
    const requests = { http: { fetch }, guardedHttp: { fetch } };
    const sp = { local: [], remote: ['https://idp.example/metadata'] };
    const source = new SamlMetadataSource({ ...requests, clock, log: silentLogger }, sp, null);
    await Promise.all([source.providers(), source.providers()]);
    assert.equal(fetched, 1);
    status = 500;
    clock.advance(3_600_000);
    for (let i = 0; i < 3; i++) assert.equal((await source.providers()).list[0]?.entityId, 'idp');
    assert.equal(fetched, 2, 'a failure is followed by a pause');
    clock.advance(24 * 3_600_000);
    for (let i = 0; i < 3; i++) await assert.rejects(source.providers(), /responded 500/);
    assert.equal(fetched, 3, 'also where no metadata is left');
    status = 200;
    clock.advance(5_000);
    assert.equal((await source.providers()).list.length, 1);
  });
});
