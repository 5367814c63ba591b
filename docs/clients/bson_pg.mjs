// Documents of docpatterns as objects in pg, by the package bson.
import { BSON, EJSON } from 'bson'
import pg from 'pg'

// A document as a parameter, in binary.
export const bson = (document) => Buffer.from(BSON.serialize(document))

// A value of any kind as a parameter, also in arrays.
export const json = (value) => EJSON.stringify(value, { relaxed: false })

// Reads results: pg.types is for all connections, and types have other numbers in other databases.
export async function register(client) {
  const { rows } = await client.query(`SELECT oid, typname AS name FROM pg_type
    WHERE oid IN ('bson'::regtype, 'bson_value'::regtype, 'objectid'::regtype)`)
  for (const { oid, name } of rows) {
    pg.types.setTypeParser(oid, name === 'objectid' ?
      (text) => new BSON.ObjectId(text) : (text) => EJSON.parse(text))
  }
}

// Runs work(client) in a transaction, again if it conflicts with another one.
export async function transaction(pool, work, isolation = 'READ COMMITTED', tries = 10) {
  const client = await pool.connect()
  try {
    for (;;) {
      try {
        await client.query('BEGIN ISOLATION LEVEL ' + isolation)
        const result = await work(client)
        await client.query('COMMIT')
        return result
      } catch (error) {
        await client.query('ROLLBACK')
        if (!['40001', '40P01'].includes(error.code) || --tries === 0) throw error
      }
    }
  } finally {
    client.release()
  }
}
