import { checkBackups } from './checks/backups.ts';
import { checkCertificateFiles } from './checks/certificate-files.ts';
import { checkClients } from './checks/clients.ts';
import { checkClock } from './checks/clock.ts';
import { checkDatabase, noWriter } from './checks/database.ts';
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

/** Runs all checks of a valid configuration. None of them changes anything. */
export async function examine(examination: Examination): Promise<readonly Section[]> {
  const database = await checkDatabase(examination);
  const isWritten = database.some(({ name, message }) => name === 'database-lease' && message !== noWriter);
  const server = await checkRunningServer(examination, isWritten);
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
