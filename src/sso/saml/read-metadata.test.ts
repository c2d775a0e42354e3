import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { systemClock } from '../../kernel/clock.ts';
import { federation } from '../test/metadata-documents.ts';
import { readMetadataOffThread } from './read-metadata.ts';
import { readMetadata } from './saml-metadata.ts';

describe('readMetadataOffThread', () => {
  it('parses long metadata documents on another thread with the same result, and rejects invalid ones', async () => {
    const providers = await readMetadataOffThread(federation, systemClock);
    assert.equal(providers.length, 400);
    assert.deepEqual(providers, readMetadata(federation));
    await assert.rejects(readMetadataOffThread(`<!DOCTYPE x>${federation}`, systemClock), /document type/);
    await assert.rejects(readMetadataOffThread(`<x>${federation}`, systemClock), /invalid XML/);
    assert.equal((await readMetadataOffThread(federation, systemClock)).length, 400, 'after a failure');
  });

  it('ends a thread that has read one metadata document for a minute, and reads the next document', async () => {
    const clock = manualClock();
    const reading = readMetadataOffThread(federation, clock);
    clock.advance(60_000);
    await assert.rejects(reading, /not read in 60 s/);
    assert.equal((await readMetadataOffThread(federation, clock)).length, 400);
  });
});
