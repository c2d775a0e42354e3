import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'node:test';
import { after, before, test } from '../clients/bounded-test.ts';
import { titleOf } from './answers/compared-request.ts';
import { compareSubject, type FoundDifference } from './answers/comparison.ts';
import { expectedDifferences } from './answers/expected-differences.ts';
import { isExpected, unmatched } from './answers/matching.ts';
import { SigningServer } from './answers/signing-server.ts';
import { subjects } from './answers/subjects/index.ts';
import { InteropNetwork } from './interop-network.ts';

/** Folder into which all differences are written; by default they are not written. */
const logFolder = process.env['HEARTH_INTEROP_LOGS'];

/** Name of the only subject to compare; by default all subjects are compared. */
const only = process.env['HEARTH_INTEROP_SUBJECT'];

describe('answers of Hearth and of the reference server to the same requests', () => {
  const foundDifferences: FoundDifference[] = [];
  let network: InteropNetwork;
  let signing: SigningServer;
  before(async () => {
    network = await InteropNetwork.start();
    signing = await SigningServer.start(network.authority);
  });
  after(async () => {
    if (logFolder)
      writeFileSync(join(logFolder, 'answers.json'), JSON.stringify(foundDifferences, undefined, 1));
    signing?.stop();
    await network?.stop();
  });

  test('compares at least 300 requests, no two of which have the same title in a subject', () => {
    const titles = subjects.flatMap(({ subject, requests }) =>
      requests.map((request) => `${subject}: ${titleOf(request)}`),
    );
    const repeated = titles.filter((title, index) => titles.indexOf(title) !== index);
    assert.deepEqual(repeated, []);
    assert.ok(titles.length >= 300, `only ${titles.length} requests`);
  });

  for (const subject of subjects) {
    if (only !== undefined && only !== subject.subject) continue;
    test(`answers requests about ${subject.subject} as the reference server does, except for the documented differences`, async () => {
      const isDocumented = (difference: FoundDifference) =>
        expectedDifferences.some((expected) => isExpected(expected, difference));
      const differences = await compareSubject(network, signing, subject, isDocumented);
      foundDifferences.push(...differences);
      const unexpected = differences.filter((difference) => !isDocumented(difference));
      assert.deepEqual(unexpected.map(describeDifference), []);
    });
  }

  if (only !== undefined) return;
  test('finds all documented differences', () => {
    assert.deepEqual(unmatched(expectedDifferences, foundDifferences), []);
  });
});

const describeDifference = ({ request, at, hearth, reference }: FoundDifference) =>
  `${request}\n    ${at}\n    Hearth:    ${hearth.slice(0, 600)}\n    reference: ${reference.slice(0, 600)}`;
