import { checkBackups } from './checks/backups.ts';
import { checkCertificateFiles } from './checks/certificate-files.ts';
import { checkClients } from './checks/clients.ts';
import { checkClock } from './checks/clock.ts';
import { checkDatabase, notOpened } from './checks/database.ts';
import { checkFederation } from './checks/federation.ts';
import { checkHost } from './checks/host.ts';
import { checkRunningServer } from './checks/running-server.ts';
import { checkSigningKeys } from './checks/signing-keys.ts';
import type { Examination } from './examination.ts';
import type { Finding } from './finding.ts';

/** Findings about one subject. */
export interface Section {
  readonly title: string;
  readonly findings: readonly Finding[];
}

/** Checks the server that a valid configuration describes, and the machine. No check changes anything. */
export async function examine(examination: Examination): Promise<readonly Section[]> {
  const database = await checkDatabase(examination);
  const isDatabaseOpen = database.some(
    ({ name, message }) => name === 'database-lease' && message !== notOpened,
  );
  const server = await checkRunningServer(examination, isDatabaseOpen);
  const [federation, clients, clock, host] = await Promise.all([
    checkFederation(examination, server.runs),
    checkClients(examination, server.runs),
    checkClock(examination),
    checkHost(examination),
  ]);
  return [
    { title: 'Database', findings: database },
    { title: 'Server', findings: server.findings },
    { title: 'Keys', findings: [...checkSigningKeys(examination), ...checkCertificateFiles(examination)] },
    { title: 'Other servers', findings: federation },
    { title: 'Clients', findings: clients },
    { title: 'This machine', findings: [...clock, ...host] },
    { title: 'Backups', findings: checkBackups(examination) },
  ];
}
