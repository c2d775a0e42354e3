export { type CheckResult, checkDatabase } from './check-database.ts';
export {
  type CheckedStores,
  type CheckFindings,
  type DatabaseCheck,
  FindingCollector,
  rowsCheck,
} from './database-check.ts';
export { sqliteFileCheck } from './file-check.ts';
export { type AssignedNumbers, numberChecks } from './number-checks.ts';
